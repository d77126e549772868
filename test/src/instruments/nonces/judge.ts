/** Checks what the processes of a test sealed; each wrote a file (../register.mjs). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/**
 * A line for each key and nonce that sealed more than one content, within one process or between
 * several (an agent killed and restarted), whatever the order of the files: a folder does not tell
 * which process was first, since process ids begin again.
 */
export const spawnedViolations = (directory: string): string[] => {
  const contents = new Map<string, Set<string>>();
  for (const name of readdirSync(directory)) {
    if (!name.endsWith(".seals")) continue;
    // A killed process may leave half a line, for a seal that did not happen.
    const lines = readFileSync(join(directory, name), "utf8").split("\n").slice(0, -1);
    for (const line of lines) {
      const [place = "", content = ""] = line.split(" ");
      contents.set(place, (contents.get(place) ?? new Set()).add(content));
    }
  }
  return [...contents]
    .filter(([, sealed]) => sealed.size > 1)
    .map(([place, sealed]) => `nonce used twice: ${place} sealed ${[...sealed].join(" and ")}`);
};
