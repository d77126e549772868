/** What tells a machine from one that was cloned from it and then given a number of its own. */
import { readFileSync } from "node:fs";

/**
 * The machine's number, which only goes into the secret of each epoch; null where there is none, as
 * on macOS, on Windows and in many containers.
 */
export const machineNumber = (file = "/etc/machine-id"): string | null => {
  try {
    const text = readFileSync(file, "latin1").trim();
    return /^[0-9a-f]{32}$/.test(text) ? text : null;
  } catch {
    return null;
  }
};
