/** Reads a password from standard input, for commands. */
import { text } from "node:stream/consumers";
import { Failure } from "../failure.ts";

export interface PasswordStreams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
}

/**
 * Reads to the end and removes one line end; prompts first at a terminal. Rejects with a Failure if
 * `--password-stdin` was not given.
 */
export const readPassword = async (
  asked: boolean | undefined,
  { stdin, stderr }: PasswordStreams = process,
): Promise<string> => {
  if (asked !== true) {
    throw new Failure("usage", "give the password on standard input, with --password-stdin");
  }
  if (stdin.isTTY === true) {
    stderr.write("Type the password (it is shown), then Enter and Ctrl-D.\n");
  }
  return (await text(stdin)).replace(/\r?\n$/, "");
};
