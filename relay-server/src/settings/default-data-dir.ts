/**
 * The default data folder: the place where each system keeps a program's state for one user, so
 * that neither store nor master key ends up in the folder a command happens to run in, such as a
 * checkout.
 */
import { existsSync, writeFileSync } from "node:fs";
import { isAbsolute, join } from "node:path";

import { Failure } from "@blindrelay/protocol/command-line";
import { homeFolder } from "@blindrelay/protocol/file-owner";

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

/**
 * The folder of the store and the master key if neither flag, variable nor file specifies one.
 * Throws a Failure (usage) if nothing says where it is.
 */
export const defaultDataFolder = (
  environment: Environment = process.env,
  platform: NodeJS.Platform = process.platform,
  home: string = homeFolder(),
): string => {
  const folder = stateFolder(environment, platform, home);
  if (isAbsolute(folder)) return join(folder, "blindrelay", "relay");
  throw new Failure("usage", "there is no home folder: set HOME, or specify --data DIR");
};

/** The folder that `--data` names, or the default. Throws a Failure (usage) for an empty text. */
export const chosenDataFolder = (given: string | undefined): string => {
  if (given !== "") return given ?? defaultDataFolder();
  // Of `--data "$DIR"` with DIR unset: it would be the current folder.
  throw new Failure("usage", "--data is empty: specify a folder, or leave it out");
};

/** The default for a help text, which is also shown where there is no such folder. */
export const dataFolderText = (): string => {
  try {
    return defaultDataFolder();
  } catch {
    return "none, because there is no home folder";
  }
};

/** Prevents the master key from being committed if the data folder is in a repository. */
export const hideFromGit = (data: string): void => {
  const file = join(data, ".gitignore");
  if (existsSync(data) && !existsSync(file)) writeFileSync(file, "*\n", { mode: 0o600 });
};
