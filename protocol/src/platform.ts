/**
 * What differs between systems: Windows has no Unix sockets in folders, and no flush of a folder.
 * Nobody has tried it there (docs/questions.md). And what lies where a file should.
 */
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, openSync, realpathSync, type Stats, statSync } from "node:fs";

export const IS_WINDOWS = process.platform === "win32";

/** A named pipe that stands for a folder, however its path is written. */
export const pipeOf = (folder: string): string => {
  const path = realpathSync.native(folder).toLowerCase();
  const digest = createHash("sha256").update(path).digest("hex").slice(0, 32);
  return `\\\\.\\pipe\\blindrelay-${digest}`;
};

/** The folder's names are on the medium on return; on Windows that is left to the file system. */
export const flushFolder = (folder: string): void => {
  if (IS_WINDOWS) return;
  const handle = openSync(folder, "r");
  try {
    fsyncSync(handle);
  } finally {
    closeSync(handle);
  }
};

/** What is in a file's place, and the fix; null for a file, a missing one, or one out of reach. */
export const notAFile = (path: string): { readonly what: string; readonly fix: string } | null => {
  let found: Stats;
  try {
    found = statSync(path);
  } catch {
    return null; // whoever opens it says why
  }
  if (found.isFile()) return null;
  if (!found.isDirectory()) {
    return { what: `${path} is a pipe, a socket or a device, not a file`, fix: "remove it" };
  }
  return {
    what: `${path} is a folder, not a file: container engines make one for a missing mount`,
    fix: "remove it, and mount the folder that it is in instead",
  };
};
