/** Reads what a program pipes in, such as a password. */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/**
 * The first lines of a text, without line ends. Waits only for those, so that the writer may keep
 * the pipe open; fewer if the input ends earlier. Nothing reads it afterwards.
 */
export const firstLines = async (input: Readable, count: number): Promise<string[]> => {
  const lines: string[] = [];
  const reader = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of reader) {
    lines.push(line);
    if (lines.length === count) break;
  }
  // A pipe that stays open would keep the process running.
  input.destroy();
  return lines;
};
