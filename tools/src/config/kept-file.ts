/**
 * A file that holds what cannot be had again, such as a keyring. It is replaced, never written
 * over, and its last good contents are kept beside it: NAME.1 is the newest.
 */
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { giveToOwner, makeFolder, takePlaceOf } from "@blindrelay/protocol/file-owner";
import { flushFolder } from "@blindrelay/protocol/platform";
import { failing } from "../base/failing.ts";
import { targetOf } from "../base/whole-file.ts";

/** Enough to get back behind a mistake that was noticed late. */
export const COPIES = 3;

export const copyPath = (path: string, n: number): string => `${path}.${n}`;

/** A file that a killed process left behind may hold secrets. */
const removeUnfinished = (path: string): void => {
  const name = basename(path);
  for (const file of readdirSync(dirname(path))) {
    const isOurs =
      file.startsWith(`${name}.`) && /^(\d+\.)?\d+\.new$/.test(file.slice(name.length + 1));
    if (isOurs) rmSync(join(dirname(path), file), { force: true });
  }
};

const MOUNTED = "it is mounted by itself and cannot be replaced: mount its folder instead";

const replace = (path: string, text: string): void => {
  const fresh = `${path}.${process.pid}.new`;
  try {
    writeFileSync(fresh, text, { mode: 0o600, flush: true });
    chmodSync(fresh, 0o600); // whatever mode an older file of that name had
    takePlaceOf(fresh, path);
    renameSync(fresh, path);
    flushFolder(dirname(path));
  } catch (error) {
    rmSync(fresh, { force: true });
    const { code, message } = error as NodeJS.ErrnoException;
    const reason = code === "EBUSY" ? MOUNTED : message;
    throw new Failure("usage", `cannot write ${path}: ${reason}; nothing was changed`, error);
  }
};

const copyIfThere = (from: string, to: string): void => {
  try {
    copyFileSync(from, to);
    chmodSync(to, 0o600);
    giveToOwner(to, from);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
};

const renameIfThere = (from: string, to: string): void => {
  if (existsSync(from)) renameSync(from, to);
};

/** Makes the present content the newest copy. */
export const keepCopy = (path: string): void => {
  // Under another name first: a full disk must not cut off a good copy.
  const fresh = `${copyPath(path, 1)}.${process.pid}.new`;
  try {
    copyIfThere(path, fresh);
    for (let n = COPIES; n > 1; n--) renameIfThere(copyPath(path, n - 1), copyPath(path, n));
    renameIfThere(fresh, copyPath(path, 1));
  } finally {
    rmSync(fresh, { force: true });
  }
};

/**
 * Writes the file so that a crash leaves the old one or the new one; must be called under its lock.
 * `isGood`: the present content is worth a copy. Throws a Failure (usage); then nothing was
 * changed.
 */
export const writeKeptFile = (path: string, text: string, isGood: boolean): void => {
  const target = targetOf(path);
  failing("usage", `cannot write ${path}: `, () => {
    makeFolder(dirname(target));
    removeUnfinished(target);
    // Copies are beside the link.
    if (target !== path) removeUnfinished(path);
    if (isGood) keepCopy(path);
  });
  replace(target, text);
};

/** What a restored copy has replaced. */
export const replacedPath = (path: string, n: number): string => `${path}.replaced-${n}`;

/** Removes the copies, which have another passphrase or none, and what they have replaced. */
export const removeCopies = (path: string): void => {
  for (let n = 1; n <= COPIES; n++) rmSync(copyPath(path, n), { force: true });
  for (let n = 1; existsSync(replacedPath(path, n)); n++) rmSync(replacedPath(path, n));
};
