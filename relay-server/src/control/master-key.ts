/**
 * Where the master key is: in `DIR/key/master.key` (32 raw bytes), outside the store and its
 * backups, or in the variable BLINDRELAY_MASTER_KEY (section 1).
 */
import { randomBytes } from "node:crypto";
import {
  closeSync,
  existsSync,
  fsyncSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { messageOf } from "@blindrelay/protocol/command-line";
import { holdLock } from "@blindrelay/protocol/file-lock";
import { giveToOwner, makeFolder, takePlaceOf } from "@blindrelay/protocol/file-owner";
import { flushFolder } from "@blindrelay/protocol/platform";
import { withDiskProblem } from "../base/disk-problem.ts";
import { MASTER_KEY_BYTES } from "./secrets.ts";

export const MASTER_KEY_VARIABLE = "BLINDRELAY_MASTER_KEY";

/** The master key is missing, malformed, or not the one that the store was created with. */
export class MasterKeyProblem extends Error {}

/** Its file cannot be read or written; the message says why. */
export class MasterKeyUnreachable extends Error {}

export const masterKeyPath = (dataDir: string): string => join(dataDir, "key", "master.key");

const readKey = (path: string): Uint8Array => {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new MasterKeyUnreachable(
      `cannot read the master key: ${messageOf(error)}; ${path} must be the file with the key of this store, which this user may read`,
      { cause: error },
    );
  }
};

/** Reads the key, from the variable if it is set, else from the file. Throws MasterKeyProblem. */
export const readMasterKey = (dataDir: string, variable: string | undefined): Uint8Array => {
  if (variable !== undefined) return parseKey(variable);
  const path = masterKeyPath(dataDir);
  if (!existsSync(path)) {
    throw new MasterKeyProblem(
      `no master key at ${path}: put the one that the store was made with there, or into ${MASTER_KEY_VARIABLE}`,
    );
  }
  const key = readKey(path);
  if (key.length !== MASTER_KEY_BYTES) {
    throw new MasterKeyProblem(
      `${path} has ${key.length} bytes instead of ${MASTER_KEY_BYTES}: restore it from where you keep it`,
    );
  }
  return key;
};

const written = <T>(dataDir: string, write: () => T): T => {
  try {
    return write();
  } catch (error) {
    throw new MasterKeyUnreachable(
      `cannot write the master key: ${withDiskProblem(error, dataDir)}`,
      { cause: error },
    );
  }
};

/** Makes a file; throws if there is one already. */
const createFile = (path: string, bytes: Uint8Array): void => {
  const file = openSync(path, "wx", 0o600);
  try {
    giveToOwner(file, dirname(path));
    writeSync(file, bytes);
    fsyncSync(file); // the store must never refer to a key that a power cut can remove
  } catch (error) {
    rmSync(path);
    throw error;
  } finally {
    closeSync(file);
  }
};

/** What file systems without hard links answer (exFAT, SMB). */
const NO_LINKS = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"];

/** Gives a file a second name, or makes a copy; unlike a rename, it never replaces a key. */
const nameAlso = (from: string, to: string): void => {
  try {
    linkSync(from, to);
  } catch (error) {
    if (!NO_LINKS.includes((error as NodeJS.ErrnoException).code ?? "")) throw error;
    createFile(to, readFileSync(from));
  }
};

/** Under another name until it is complete: a truncated key must not be mistaken for a key. */
const writeKey = (path: string, key: Uint8Array): void => {
  const part = `${path}.new`;
  rmSync(part, { force: true });
  createFile(part, key);
  nameAlso(part, path);
  rmSync(part);
  flushFolder(dirname(path));
};

/**
 * The key for a new store: from the variable, left by an `init` that crashed, or newly generated.
 */
export const makeMasterKey = (dataDir: string, variable: string | undefined): Uint8Array => {
  const path = masterKeyPath(dataDir);
  if (variable !== undefined || existsSync(path)) return readMasterKey(dataDir, variable);
  const key = randomBytes(MASTER_KEY_BYTES);
  written(dataDir, () => {
    makeFolder(join(dataDir, "key"));
    writeKey(path, key);
  });
  return key;
};

const nextKeyPath = (dataDir: string): string => `${masterKeyPath(dataDir)}.next`;

/**
 * Keeps other rotations off this folder's keys until the returned function is called; null if one
 * runs.
 */
export const holdNextKey = (dataDir: string): (() => void) | null =>
  written(dataDir, () => holdLock(nextKeyPath(dataDir)));

/** Generates the next key beside the current one; replaces one left by an earlier attempt. */
export const makeNextKey = (dataDir: string): Uint8Array => {
  const key = randomBytes(MASTER_KEY_BYTES);
  written(dataDir, () => {
    rmSync(nextKeyPath(dataDir), { force: true });
    writeKey(nextKeyPath(dataDir), key);
  });
  return key;
};

/** The next key, if it was generated; else null. */
export const readNextKey = (dataDir: string): Uint8Array | null => {
  if (!existsSync(nextKeyPath(dataDir))) return null;
  const key = readKey(nextKeyPath(dataDir));
  return key.length === MASTER_KEY_BYTES ? key : null; // shorter after a power cut
};

/**
 * Replaces the current key with the next one; returns where the old one is now, within the folder.
 */
export const adoptNextKey = (dataDir: string, nowMs: number): string => {
  const kept = `${masterKeyPath(dataDir)}.${new Date(nowMs).toISOString().replaceAll(":", "")}.old`;
  written(dataDir, () => {
    // Keeps the old key first, so that a key is in place at any moment.
    if (!existsSync(kept)) nameAlso(masterKeyPath(dataDir), kept);
    takePlaceOf(nextKeyPath(dataDir), masterKeyPath(dataDir));
    renameSync(nextKeyPath(dataDir), masterKeyPath(dataDir));
    flushFolder(join(dataDir, "key"));
  });
  return join("key", basename(kept));
};

/** 64 hexadecimal digits, or base64 or base64url of 32 bytes. Throws MasterKeyProblem. */
export const parseKey = (given: string): Uint8Array => {
  // A Kubernetes Secret that is made from a file ends with a line end.
  const text = given.trim();
  const key = /^[0-9a-fA-F]{64}$/.test(text)
    ? Buffer.from(text, "hex")
    : /^[A-Za-z0-9+/_-]{43}=?$/.test(text)
      ? Buffer.from(text, "base64")
      : null;
  if (key?.length === MASTER_KEY_BYTES) return key;
  throw new MasterKeyProblem(
    `${MASTER_KEY_VARIABLE} must be 64 hexadecimal digits or 32 bytes as base64`,
  );
};
