/** Reads what a program pipes in, such as a password. */
import type { Readable } from "node:stream";
import { Failure } from "@blindrelay/protocol/command-line";
import { pipedText } from "@blindrelay/protocol/prompt";

/** No secret is as long. */
const MAX_BYTES = 1_048_576;
const LF = 10;

/** A text to its end. Rejects with a Failure (usage) if it is too long, or not UTF-8. */
export const readInput = async (input: Readable, most = MAX_BYTES): Promise<string> =>
  pipedText(await readBytes(input, most));

/**
 * The first lines of a text, without line ends. Waits only for those, so that the writer may keep
 * the pipe open; fewer if the input ends earlier. Nothing reads it afterwards.
 */
export const firstLines = async (input: Readable, count: number): Promise<string[]> => {
  const lines = pipedText(await readBytes(input, MAX_BYTES, count)).split(/\r\n|\n|\r/);
  // A pipe that stays open would keep the process running.
  input.destroy();
  if (lines.at(-1) === "") lines.pop();
  return lines.slice(0, count);
};

/** To the end of the input, or of so many lines. */
const readBytes = async (
  input: Readable,
  most: number,
  lines = Number.POSITIVE_INFINITY,
): Promise<Buffer> => {
  const parts: Buffer[] = [];
  let length = 0;
  let ended = 0;
  for await (const chunk of input) {
    const part = Buffer.from(chunk);
    let end = part.indexOf(LF) + 1;
    for (; end > 0 && ++ended < lines; ) end = part.indexOf(LF, end) + 1;
    // What follows may be cut in the middle of a character.
    parts.push(ended === lines ? part.subarray(0, end) : part);
    length += part.length;
    if (length > most) throw new Failure("usage", `standard input has more than ${most} bytes`);
    if (ended === lines) break;
  }
  return Buffer.concat(parts);
};
