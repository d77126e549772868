/** Creates the folder for reports. */
import { mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/**
 * Makes a folder with its parents; resolves with the first one that was made, or undefined. One
 * after the other, because Node's `recursive` never ends where a parent exists and takes no
 * folders, as /proc does. Rejects with the file system's error.
 */
export async function makeFolder(path: string): Promise<string | undefined> {
  const folder = resolve(path);
  const parent = dirname(folder);
  try {
    await mkdir(folder);
    return folder;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") {
      await mkdir(folder, { recursive: true }); // throws if it is a file
      return undefined;
    }
    if (code !== "ENOENT" || parent === folder) throw error;
    const first = await makeFolder(parent);
    // The parent was there, and still there is no such file: nothing can be made in it.
    if (first === undefined) throw error;
    await mkdir(folder);
    return first;
  }
}
