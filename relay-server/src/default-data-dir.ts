/**
 * The default data folder: the place where each system keeps a program's state for one user, so
 * that neither store nor master key ends up in the folder a command happens to run in, such as a
 * checkout.
 */
import { existsSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * A variable that names a folder. A relative path is ignored, as the XDG specification requires.
 */
const folderOf = (value: string | undefined): string | null =>
  value !== undefined && isAbsolute(value) ? value : null;

const stateFolder = (environment: Environment, platform: NodeJS.Platform, home: string): string => {
  if (platform === "darwin") return join(home, "Library", "Application Support");
  if (platform === "win32") {
    return folderOf(environment.LOCALAPPDATA) ?? join(home, "AppData", "Local");
  }
  return folderOf(environment.XDG_STATE_HOME) ?? join(home, ".local", "state");
};

/** The folder of the store and the master key if neither flag, variable nor file specifies one. */
export const defaultDataFolder = (
  environment: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = homedir(),
): string => join(stateFolder(environment, platform, home), "blindrelay", "relay");

/** Prevents the master key from being committed if the data folder is in a repository. */
export const hideFromGit = (data: string): void => {
  const file = join(data, ".gitignore");
  if (existsSync(data) && !existsSync(file)) writeFileSync(file, "*\n", { mode: 0o600 });
};
