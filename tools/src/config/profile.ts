/**
 * A profile: a relay, an account, and the keyring with the end-to-end secrets of the user's agents.
 * One file of mode 0600 in a folder of mode 0700; `BLINDRELAY_CONFIG_DIR` moves it. Token and
 * keyring can be encrypted with a passphrase; `sealed` then replaces them.
 */
import { chmodSync, copyFileSync, existsSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { withLock } from "@blindrelay/protocol/file-lock";
import { giveToOwner, homeFolder } from "@blindrelay/protocol/file-owner";
import type { KeyringEntry } from "@blindrelay/protocol/keyring";
import { parseJson } from "@blindrelay/protocol/parse-json";
import { notAFile } from "@blindrelay/protocol/platform";
import { readTextFile } from "../base/text-file.ts";
import {
  COPIES,
  copyPath,
  keepCopy,
  removeCopies,
  replacedPath,
  writeKeptFile,
} from "./kept-file.ts";
import { openText, type SealedText, sealText } from "./sealed.ts";

/** An agent's secret with the packet suite it goes with. */
export interface Key extends Omit<KeyringEntry, "packet_version"> {
  readonly packet_version: string;
  /** The http(s) base of the agent's relay, if that is another one than the profile's. */
  readonly relay?: string;
  /** Of a pending secret that was sent to its device: the `id` of that, and when (ISO 8601). */
  readonly rekey?: { readonly id: string; readonly at: string };
}

export interface Profile {
  /** The relay's http(s) base. */
  readonly url: string;
  readonly username: string;
  /** Absent after `auth logout`. */
  readonly account_token?: string;
  readonly keyring: Keyring;
  /** Secrets that are to replace those of the keyring, once the relay has agreed. */
  readonly pending?: Keyring;
}

/** By agent_id. */
export interface Keyring {
  readonly [agentId: string]: Key;
}

/** The environment variables of the process. */
export type Environment = Readonly<Record<string, string | undefined>>;

const NAME_PATTERN = /^[A-Za-z0-9_-]{1,64}$/;

/** The folder of all profiles; null if nothing says where it is. */
const profileFolder = (env: Environment): string | null => {
  if (env.BLINDRELAY_CONFIG_DIR) return env.BLINDRELAY_CONFIG_DIR;
  if (env.XDG_CONFIG_HOME) return join(env.XDG_CONFIG_HOME, "blindrelay");
  const home = env.HOME || homeFolder();
  return home === "" ? null : join(home, ".config", "blindrelay");
};

/**
 * The path of the profile with this name; null if nothing says where profiles are. Throws a Failure
 * (usage) for an invalid name.
 */
export const profilePath = (name: string, env: Environment): string | null => {
  if (!NAME_PATTERN.test(name)) {
    const rule = "letters, digits, _ and -, at most 64";
    throw new Failure("usage", `invalid profile name: ${name} (${rule})`);
  }
  const folder = profileFolder(env);
  return folder === null ? null : join(folder, `${name}.json`);
};

interface ProfileFile extends Partial<Profile> {
  readonly sealed?: SealedText;
}

/** Complete secrets in a text that may not be JSON any more. */
const SECRETS = /"e2e_[0-9A-Za-z]{49}"/g;

/** What a broken file holds, so that nobody deletes it; and how to get it back. */
const repairOf = (path: string, text: string): string => {
  const secrets = new Set(text.match(SECRETS)).size;
  const holds =
    secrets > 0
      ? `it holds the only copy of ${secrets} end-to-end ${secrets === 1 ? "secret" : "secrets"}`
      : "it may hold the only copy of end-to-end secrets";
  const back = existsSync(copyPath(path, 1))
    ? "or go back to the last good copy: blindrelay profile restore"
    : "there is no earlier copy";
  return `${holds}: keep it, and repair it in an editor; ${back}`;
};

/** Nobody named it, and a pipe would be waited for. Throws a Failure (usage). */
const demandFile = (path: string): void => {
  const problem = notAFile(path);
  if (problem === null) return;
  throw new Failure("usage", `the profile ${problem.what}; ${problem.fix}`);
};

const readFile = (path: string): ProfileFile | null => {
  if (!existsSync(path)) return null;
  demandFile(path);
  const text = readTextFile(path, "the profile");
  let value: unknown;
  try {
    value = parseJson(text);
  } catch (error) {
    const what = `the profile ${path} is ${(error as Error).message}`;
    throw new Failure("usage", `${what}; ${repairOf(path, text)}`, error);
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Failure("usage", `the profile ${path} is no JSON object; ${repairOf(path, text)}`);
};

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

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const isKeyring = (value: unknown): value is Keyring =>
  typeof value === "object" &&
  value !== null &&
  Object.values(value).every(
    (key) =>
      isText(key?.agent_token) &&
      isText(key?.packet_version) &&
      (key.device_key === undefined || isText(key.device_key)) &&
      (key.relay === undefined || isText(key.relay)) &&
      (key.rekey === undefined || (isText(key.rekey?.id) && isText(key.rekey?.at))),
  );

/** Without a prototype, so that an agent may be called "constructor". */
const asMap = (keyring: Keyring): Keyring => Object.assign(Object.create(null), keyring);

/** The member that keeps a file from being a profile; null if it is one. */
const invalidMember = (file: ProfileFile): string | null => {
  const { url, username, account_token, keyring, pending } = file;
  if (!isText(url)) return "url";
  if (!isText(username)) return "username";
  if (account_token !== undefined && !isText(account_token)) return "account_token";
  if (!isKeyring(keyring)) return "keyring";
  return pending === undefined || isKeyring(pending) ? null : "pending";
};

/**
 * The profile, or null if there is none yet. `passphrase` is called only if it is encrypted. Throws
 * a Failure: usage for a broken file, refused for a wrong passphrase.
 */
export const readProfile = (path: string, passphrase: () => string = () => ""): Profile | null => {
  const file = readFile(path);
  if (file === null) return null;
  const content = unseal(file, path, passphrase);
  const invalid = invalidMember(content);
  if (invalid !== null) {
    const what = `"${invalid}" of the profile ${path} is missing or invalid`;
    throw new Failure("usage", `${what}; ${repairOf(path, JSON.stringify(content))}`);
  }
  const { keyring, pending, ...others } = content as Profile;
  return {
    ...others,
    keyring: asMap(keyring),
    ...(pending === undefined ? {} : { pending: asMap(pending) }),
  };
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

const isGoodFile = (path: string): boolean => {
  try {
    const file = readFile(path);
    return file !== null && (file.sealed !== undefined || invalidMember(file) === null);
  } catch {
    return false;
  }
};

/**
 * Writes the profile so that a crash leaves the old one or the new one, and keeps a copy of the old
 * one. `passphrase`: null keeps it readable by anyone who can read the file. Throws a Failure
 * (usage), also if the file is gone and only its copies are left, which those of a new one would
 * replace; then nothing was changed.
 */
export const writeProfile = (
  path: string,
  profile: Profile,
  passphrase: string | null = null,
): void => {
  if (!existsSync(path) && existsSync(copyPath(path, 1))) {
    const back = "go back to them: blindrelay profile restore; or use --profile NAME";
    throw new Failure("usage", `${path} is gone, and its last copies hold its secrets: ${back}`);
  }
  const text = `${JSON.stringify(asFile(profile, passphrase), null, 2)}\n`;
  writeKeptFile(path, text, isGoodFile(path));
};

interface ProfileCopy {
  readonly path: string;
  /** ISO 8601, of its last change. */
  readonly written_at: string;
  /** Null if it is encrypted. */
  readonly agents: readonly string[] | null;
}

/** The good copies of a profile, the newest first. */
export const listCopies = (path: string): ProfileCopy[] =>
  Array.from({ length: COPIES }, (_, i) => copyPath(path, i + 1))
    .filter(isGoodFile)
    .map((copy) => {
      const { sealed, keyring } = readFile(copy) as ProfileFile;
      const agents = sealed === undefined ? Object.keys(keyring ?? {}) : null;
      return { path: copy, written_at: statSync(copy).mtime.toISOString(), agents };
    });

/** Complete secrets of a file, quoted; null: none of the passphrases opens it. */
const secretsIn = (path: string, passphrases: ReadonlySet<string>): string[] | null => {
  const text = readFileSync(path, "utf8");
  if (!text.includes('"sealed"')) return text.match(SECRETS) ?? [];
  for (const passphrase of passphrases) {
    try {
      const opened = unseal(parseJson(text) as ProfileFile, path, () => passphrase);
      return JSON.stringify(opened).match(SECRETS) ?? [];
    } catch {
      // Another one may open it.
    }
  }
  return null;
};

/**
 * Throws a Failure (usage) if a file that was replaced, which `renewCopies` would remove, has
 * secrets that the profile lacks, or may have: whoever restored an older copy may still want them.
 */
export const demandNothingLost = (
  path: string,
  { keyring, pending = {} }: Profile,
  passphrases: ReadonlySet<string>,
): void => {
  const held = [keyring, pending].flatMap((keys) =>
    Object.values(keys).map(({ agent_token }) => JSON.stringify(agent_token)),
  );
  for (let n = 1; existsSync(replacedPath(path, n)); n++) {
    const file = replacedPath(path, n);
    const found = secretsIn(file, passphrases);
    const lost = new Set(found?.filter((secret) => !held.includes(secret))).size;
    if (found !== null && lost === 0) continue;
    const has = found === null ? "may have secrets" : `has ${lost} of the secrets`;
    const what = `${file} would be removed, and it ${has} that the profile lacks`;
    throw new Failure("usage", `${what}: copy them, or remove it yourself; nothing was changed`);
  }
};

/**
 * Leaves one copy, of the present file: earlier ones would still open without the new passphrase,
 * or hold a token that is to be forgotten. Under its lock.
 */
export const renewCopies = (path: string): void => {
  removeCopies(path);
  keepCopy(path);
};

/**
 * Replaces the profile with a copy of it, under the lock. Returns where the file before it is; null
 * if there was none.
 */
export const restoreCopy = (path: string, copy: ProfileCopy): string | null => {
  demandFile(path);
  const text = readTextFile(copy.path, "the copy");
  let aside: string | null = null;
  withLock(path, () => {
    if (existsSync(path)) {
      for (let n = 1; aside === null || existsSync(aside); n++) aside = replacedPath(path, n);
      copyFileSync(path, aside);
      chmodSync(aside, 0o600);
      giveToOwner(aside, path);
    }
    writeKeptFile(path, text, false);
  });
  return aside;
};
