/**
 * A profile: a relay, an account, and the keyring with the end-to-end secrets of the user's agents.
 * One file of mode 0600 in a folder of mode 0700; `BLINDRELAY_CONFIG_DIR` moves it. Token and
 * keyring can be encrypted with a passphrase; `sealed` then replaces them.
 */
import { chmodSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join } from "node:path";
import { Failure } from "../failure.ts";
import { openText, type SealedText, sealText } from "./sealed.ts";

/** An agent's secret with the packet suite it goes with. */
export interface Key {
  readonly agent_token: string;
  readonly packet_version: string;
}

export interface Profile {
  /** The relay's http(s) base. */
  readonly url: string;
  readonly username: string;
  readonly account_token: string;
  /** By agent_id. */
  readonly keyring: { readonly [agentId: string]: Key };
}

/** The environment variables of the process. */
export type Environment = Readonly<Record<string, string | undefined>>;

const NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

/** The path of the profile with this name. Throws a Failure (usage) for an invalid name. */
export const profilePath = (name: string, env: Environment): string => {
  if (!NAME_PATTERN.test(name)) {
    const rule = "letters, digits, _ and -, at most 64";
    throw new Failure("usage", `invalid profile name: ${name} (${rule})`);
  }
  const base =
    env.BLINDRELAY_CONFIG_DIR ||
    join(env.XDG_CONFIG_HOME || join(homedir(), ".config"), "blindrelay");
  return join(base, `${name}.json`);
};

interface ProfileFile extends Partial<Profile> {
  readonly sealed?: SealedText;
}

const readFile = (path: string): ProfileFile | null => {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw new Failure("usage", `cannot read the profile ${path}: ${(error as Error).message}`);
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) return value;
  } catch {
    // Reported below, without the content.
  }
  throw broken(path);
};

const broken = (path: string): Failure =>
  new Failure("usage", `the profile ${path} is broken; remove it and log in again`);

const aadOf = (url: string, username: string): string => JSON.stringify([url, username]);

/** The content of `sealed`. Throws a Failure (refused) for a wrong passphrase. */
const unseal = (file: ProfileFile, path: string, passphrase: () => string): ProfileFile => {
  const { sealed, url = "", username = "" } = file;
  if (sealed === undefined) return file;
  const text = openText(sealed, passphrase(), aadOf(url, username));
  if (text === null) {
    throw new Failure("refused", `wrong passphrase for ${path}, or the file was changed`);
  }
  return { url, username, ...(JSON.parse(text) as object) };
};

/** Whether the profile is encrypted with a passphrase. */
export const isSealed = (path: string): boolean => readFile(path)?.sealed !== undefined;

/**
 * The profile, or null if there is none yet. `passphrase` is called only if it is encrypted. Throws
 * a Failure: usage for a broken file, refused for a wrong passphrase.
 */
export const readProfile = (path: string, passphrase: () => string = () => ""): Profile | null => {
  const file = readFile(path);
  if (file === null) return null;
  const { url, username, account_token, keyring } = unseal(file, path, passphrase);
  if (url && username && account_token && typeof keyring === "object" && keyring !== null) {
    // Without a prototype, so that an agent may be called "constructor".
    const keys: Record<string, Key> = Object.assign(Object.create(null), keyring);
    return { url, username, account_token, keyring: keys };
  }
  throw broken(path);
};

const asFile = (profile: Profile, passphrase: string | null): object => {
  if (passphrase === null) return profile;
  const { url, username, ...secrets } = profile;
  return {
    url,
    username,
    sealed: sealText(JSON.stringify(secrets), passphrase, aadOf(url, username)),
  };
};

/**
 * Writes the profile so that a crash leaves the old one or the new one. `passphrase`: null keeps it
 * readable by anyone who can read the file.
 */
export const writeProfile = (
  path: string,
  profile: Profile,
  passphrase: string | null = null,
): void => {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const fresh = `${path}.${process.pid}.new`;
  writeFileSync(fresh, `${JSON.stringify(asFile(profile, passphrase), null, 2)}\n`, {
    mode: 0o600,
    flush: true,
  });
  chmodSync(fresh, 0o600); // whatever mode an older file of that name had
  renameSync(fresh, path);
};
