/**
 * Files stay their owner's: what root makes in another user's folder, as through sudo with HOME
 * kept, belongs to that user. Otherwise one such run takes the file away from them.
 */
import {
  chmodSync,
  constants,
  fchmodSync,
  fchownSync,
  lchownSync,
  mkdirSync,
  type Stats,
  statSync,
} from "node:fs";
import { homedir } from "node:os";
import { dirname, resolve } from "node:path";

/**
 * A flag for opening what root then gives away: a link that somebody put there must not be
 * followed. Windows has none.
 */
export const NO_LINK = constants.O_NOFOLLOW ?? 0;

/** A user without an entry and without HOME, as in a container, has none: "". */
export const homeFolder = (): string => {
  try {
    return homedir();
  } catch {
    return "";
  }
};

const asRoot = (): boolean => process.geteuid?.() === 0;

/**
 * Gives what was just made (a path, or an open file) to the owner of `like`; if there is none, to
 * the owner of its folder. Does nothing unless run as root.
 */
export const giveToOwner = (made: string | number, like: string): void => {
  if (!asRoot()) return;
  try {
    const { uid, gid }: Stats =
      statSync(like, { throwIfNoEntry: false }) ?? statSync(dirname(like));
    if (typeof made === "number") fchownSync(made, uid, gid);
    else lchownSync(made, uid, gid);
  } catch {
    // A root without that right, or a file system without owners: the file is usable as it is.
  }
};

/**
 * Gives a file that is about to replace another one (a path, or an open file) its owner and mode,
 * of which only `most` is kept: whoever else may read the old file expects to read the new one.
 */
export const takePlaceOf = (made: string | number, replaced: string, most = 0o770): void => {
  giveToOwner(made, replaced);
  const mode = statSync(replaced, { throwIfNoEntry: false })?.mode;
  if (mode === undefined) return;
  try {
    if (typeof made === "number") fchmodSync(made, mode & most);
    else chmodSync(made, mode & most);
  } catch {
    // A file system without modes.
  }
};

const isFolder = (path: string): boolean =>
  statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

/**
 * Makes a folder and its parents, if missing, each owned as the one that it is in. Returns the
 * first of them that it made, or undefined if all were there. One after another, because Node's
 * `recursive` never returns below a folder that accepts none, such as /proc. Throws the system's
 * error.
 */
export const makeFolder = (path: string, mode = 0o700): string | undefined => {
  const folder = resolve(path);
  const parent = dirname(folder);
  const make = (): string | undefined => {
    if (isFolder(folder)) return undefined;
    try {
      mkdirSync(folder, { mode });
    } catch (error) {
      // By another process, in between.
      if (isFolder(folder)) return undefined;
      throw error;
    }
    giveToOwner(folder, parent);
    return folder;
  };
  try {
    return make();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT" || parent === folder) throw error;
    const first = makeFolder(parent, mode);
    const made = make();
    return first ?? made;
  }
};
