/** Checks what the processes of a test sealed; each wrote a file (../register.mjs). */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { NonceRecorder } from "./recorder.ts";

/** Every reuse within one process or between several (an agent killed and restarted). */
export const spawnedViolations = (directory: string): string[] => {
  const all = new NonceRecorder();
  for (const name of readdirSync(directory)) {
    if (!name.endsWith(".seals")) continue;
    // A killed process may leave half a line, for a seal that did not happen.
    const lines = readFileSync(join(directory, name), "utf8").split("\n").slice(0, -1);
    for (const line of lines) {
      const [place = "", content = ""] = line.split(" ");
      try {
        all.add({ place, content });
      } catch {
        // Stored by the recorder.
      }
    }
  }
  return all.takeViolations();
};
