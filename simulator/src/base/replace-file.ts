/** Writes files that are whole, or as they were: after Ctrl-C, and on a full disk. */
import { rename, rm, stat, writeFile } from "node:fs/promises";

/** Rejects with the file system's error. */
export async function replaceFile(file: string, text: string): Promise<void> {
  const there = await stat(file).catch(() => null);
  // Such as /dev/stdout, which is not to be replaced.
  if (there !== null && !there.isFile()) return writeFile(file, text);
  const fresh = `${file}.${process.pid}.new`;
  try {
    await writeFile(fresh, text);
    await rename(fresh, file);
  } catch (error) {
    await rm(fresh, { force: true });
    throw error;
  }
}
