/**
 * Why files cannot be written in a folder. SQLite says "unable to open database file" or
 * "attempt to write a readonly database", whatever the cause is.
 */
import { accessSync, constants, existsSync, statfsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { messageOf } from "@blindrelay/protocol/command-line";

interface DiskProblem {
  readonly what: string;
  readonly fix: string;
}

/** Of a folder that may be missing yet; null: none is seen. Writes nothing. */
export const diskProblem = (path: string): DiskProblem | null => {
  const folder = existing(path);
  try {
    accessSync(folder, constants.W_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EROFS") {
      return { what: `the disk of ${folder} is read-only`, fix: "mount it for writing" };
    }
    if (code !== "EACCES") return null;
    return { what: `this user may not write in ${folder}`, fix: "run as its owner" };
  }
  // Some file systems have no such limit, or cannot tell, and report 0 of 0.
  const { blocks, bavail, files, ffree } = statfsSync(folder);
  if (blocks > 0 && bavail === 0)
    return { what: `the disk of ${folder} is full`, fix: "make room on it" };
  if (files === 0 || ffree > 0) return null;
  return {
    what: `the disk of ${folder} has no inode left for another file`,
    fix: "remove files from it",
  };
};

/** The folder, or the one that it would be made in. */
const existing = (path: string): string => {
  let folder = resolve(path);
  while (!existsSync(folder)) folder = dirname(folder);
  return folder;
};

/** `f_type` of statfs(2). */
const NETWORKS: { readonly [type: number]: string } = {
  26985: "NFS", // 0x6969
  20859: "SMB", // 0x517b
  4266872130: "SMB", // 0xfe534d42
  4283649346: "SMB", // 0xff534d42: CIFS
};

/** Of a folder for SQLite, which needs locks and memory that one machine shares; as above. */
export const networkProblem = (path: string): DiskProblem | null => {
  const folder = existing(path);
  // Some systems report it with a sign.
  const name = NETWORKS[statfsSync(folder).type >>> 0];
  if (name === undefined) return null;
  return {
    what: `${folder} is on ${name}, where SQLite may damage a store`,
    fix: "move it to a disk of this machine, or use --store postgres://...",
  };
};

/** The error, and the problem if there is one: one line for a person. */
export const withDiskProblem = (error: unknown, folder: string): string => {
  const problem = diskProblem(folder);
  return problem === null
    ? messageOf(error)
    : `${messageOf(error)}; ${problem.what}: ${problem.fix}`;
};
