/** Writes files that are whole, or as they were: after Ctrl-C, and on a full disk. */
import { realpath, rename, rm, stat, writeFile } from "node:fs/promises";
import { Failure } from "@blindrelay/protocol/command-line";

/** Rejects with a Failure that is not reported as a bug: a disk may be full. */
export async function replaceFile(file: string, text: string): Promise<void> {
  try {
    await replace(file, text);
  } catch (error) {
    throw new Failure("fault", `${file} could not be written: ${(error as Error).message}`);
  }
}

async function replace(file: string, text: string): Promise<void> {
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
