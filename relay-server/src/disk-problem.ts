/**
 * Why files cannot be written in a folder. SQLite says "unable to open database file" or
 * "attempt to write a readonly database", whatever the cause is.
 */
import { accessSync, constants, statfsSync } from "node:fs";

/** The cause and its fix, on one line; null: none is seen. Writes nothing. */
export const diskProblem = (folder: string): string | null => {
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EROFS") return `the disk of ${folder} is read-only: mount it for writing`;
    if (code === "EACCES") return `${folder} may not be written by this user: change its owner`;
    return null;
  }
  const { bavail, files, ffree } = statfsSync(folder);
  if (bavail === 0) return `the disk of ${folder} is full: make room on it`;
  // Some file systems have no such limit, and report 0 of 0.
  if (files > 0 && ffree === 0) {
    return `the disk of ${folder} has no inode left for another file: remove files from it`;
  }
  return null;
};
