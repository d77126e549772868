/** Writes files that are whole, or as they were: after Ctrl-C, and on a full disk. */
import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";

/** Rejects with the file system's error. */
export async function replaceFile(file: string, text: string): Promise<void> {
  // A link stays one.
  const target = await realpath(file).catch(() => file);
  const there = await stat(target).catch(() => null);
  // Such as /dev/stdout, which is not to be replaced.
  if (there !== null && !there.isFile()) return writeFile(file, text);
  const fresh = `${target}.${process.pid}.new`;
  try {
    await writeFile(fresh, text);
    await rename(fresh, target);
  } catch (error) {
    await rm(fresh, { force: true });
    // A file that is mounted by itself cannot be replaced.
    if ((error as NodeJS.ErrnoException).code !== "EBUSY") throw error;
    await writeFile(target, text);
  }
}
