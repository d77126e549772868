/** Creates the folder for reports. */
import { mkdir } from "node:fs/promises";
import { dirname, resolve } from "node:path";

/**
 * Creates a folder with its parents; resolves with the first one that was created, or undefined.
 * One after another, because Node's `recursive` never returns if a parent exists that accepts no
 * folders, such as /proc. Rejects with the file system's error.
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
    // The parent exists but the folder still does not: nothing can be created there.
    if (first === undefined) throw error;
    await mkdir(folder);
    return first;
  }
}
