/**
 * Storage in a folder: one file (0600) per name. A write goes to a second file that is flushed and
 * renamed over the first, then the folder is flushed, so a power cut leaves either the old text or
 * the new one. Reads always come from the file system.
 */
import {
  closeSync,
  constants,
  fsyncSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { makeFolder, NO_LINK, takePlaceOf } from "@blindrelay/protocol/file-owner";
import { flushFolder } from "@blindrelay/protocol/platform";
import type { StoragePort } from "../ports.ts";

const NEW_SUFFIX = ".new";
const LOCK_PREFIX = "lock.";

const writeDurably = (path: string, text: string, replaced: string): void => {
  const { O_WRONLY, O_CREAT, O_TRUNC } = constants;
  const handle = openSync(path, O_WRONLY | O_CREAT | O_TRUNC | NO_LINK, 0o600);
  try {
    takePlaceOf(handle, replaced);
    const bytes = Buffer.from(text, "latin1");
    for (let at = 0; at < bytes.length; ) at += writeSync(handle, bytes, at);
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/** Creates the folder (0700) and its parents if missing. */
export const makeStateFolder = makeFolder;

/** Storage in an existing folder. */
export const folderStorage = (folder: string): StoragePort => ({
  read(name) {
    try {
      return readFileSync(join(folder, name), "latin1");
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  },
  write(name, text) {
    const path = join(folder, name);
    writeDurably(path + NEW_SUFFIX, text, path);
    renameSync(path + NEW_SUFFIX, path);
    flushFolder(folder);
  },
});

/** What a file system puts at the root of a volume, which a state folder may be. */
const OF_VOLUMES = ["lost+found", ".snapshot", "System Volume Information"];

/**
 * Whether nothing was ever stored here: there are no entries except those of the volume, locks,
 * which contain no state, and new files that a power cut left incomplete.
 */
export const isUnused = (folder: string): boolean =>
  readdirSync(folder).every(
    (name) =>
      name.startsWith(LOCK_PREFIX) || name.endsWith(NEW_SUFFIX) || OF_VOLUMES.includes(name),
  );
