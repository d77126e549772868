/** A new password for a user, from standard input or from the person at the terminal. */
import { createInterface } from "node:readline/promises";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { Failure } from "../failure.ts";

/** What the flag says of itself. */
export const PASSWORD_STDIN =
  "read the password from standard input, one line end removed; without it, the terminal asks";

interface PasswordStreams {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
}

/**
 * With `--password-stdin` it reads to the end and removes one line end; without, it asks at the
 * terminal, twice. Rejects with a Failure: usage if there is no terminal or the answers differ,
 * interrupted for Ctrl-C.
 */
export const readPassword = async (
  isPiped: boolean | undefined,
  streams: PasswordStreams = process,
): Promise<string> => {
  const { stdin, stderr } = streams;
  if (isPiped === true) {
    if (stdin.isTTY === true) {
      stderr.write("Type the password (it is shown), then Enter and Ctrl-D.\n");
    }
    return (await text(stdin)).replace(/\r?\n$/, "");
  }
  if (stdin.isTTY !== true) {
    throw new Failure("usage", "give the password on standard input, with --password-stdin");
  }
  const [password, again] = await askHidden(streams, ["Password: ", "Once more: "]);
  if (password === again) return password as string;
  throw new Failure("usage", "the two passwords differ; nothing was done");
};

/** The answers to questions, none of which is shown. */
const askHidden = async (
  { stdin, stderr }: PasswordStreams,
  questions: readonly string[],
): Promise<string[]> => {
  const unseen = new PassThrough().resume();
  const prompt = createInterface({ input: stdin, output: unseen, terminal: true });
  const interruption = new AbortController();
  const { signal } = interruption;
  prompt.on("SIGINT", () => interruption.abort());
  const answers: string[] = [];
  try {
    for (const question of questions) {
      stderr.write(question);
      answers.push(await prompt.question("", { signal }));
      stderr.write("\n");
    }
    return answers;
  } catch (error) {
    if ((error as Error).name !== "AbortError") throw error;
    stderr.write("\n");
    throw signal.aborted
      ? new Failure("interrupted", "interrupted; nothing was done", error)
      : new Failure("usage", "not answered; nothing was done", error);
  } finally {
    prompt.close();
  }
};
