/** Reads what a program pipes in, such as a password. */
import type { Readable } from "node:stream";
import { StringDecoder } from "node:string_decoder";
import { Failure } from "./failure.ts";

/** In characters: no secret is as long. */
const MAX_LENGTH = 1_048_576;

/** A text to its end, or until it is enough. Rejects with a Failure (usage) if it is too long. */
export const readInput = async (
  input: Readable,
  most = MAX_LENGTH,
  isEnough: (text: string) => boolean = () => false,
): Promise<string> => {
  const decoder = new StringDecoder();
  let text = "";
  for await (const chunk of input) {
    text += typeof chunk === "string" ? chunk : decoder.write(chunk);
    if (text.length > most) {
      throw new Failure("usage", `standard input has more than ${most} characters`);
    }
    if (isEnough(text)) break;
  }
  return text + decoder.end();
};

/**
 * The first lines of a text, without line ends. Waits only for those, so that the writer may keep
 * the pipe open; fewer if the input ends earlier. Nothing reads it afterwards.
 */
export const firstLines = async (input: Readable, count: number): Promise<string[]> => {
  const isEnough = (text: string) => text.split("\n", count + 1).length > count;
  const lines = (await readInput(input, MAX_LENGTH, isEnough)).split(/\r\n|\n|\r/);
  // A pipe that stays open would keep the process running.
  input.destroy();
  if (lines.at(-1) === "") lines.pop();
  return lines.slice(0, count);
};
