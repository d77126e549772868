/** Reads what a program pipes in, such as a password. */
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";

/**
 * The first lines of a text, without their ends. Waits for no more than those, so that anyone who
 * writes them may keep the pipe open; fewer where the input ends before. Nothing reads it after.
 */
export const firstLines = async (input: Readable, count: number): Promise<string[]> => {
  const lines: string[] = [];
  const reader = createInterface({ input, crlfDelay: Number.POSITIVE_INFINITY });
  for await (const line of reader) {
    lines.push(line);
    if (lines.length === count) break;
  }
  // A pipe that stays open would keep the process.
  input.destroy();
  return lines;
};
