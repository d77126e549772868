/** A new password for a user, from standard input or from the person at the terminal. */
import { createInterface } from "node:readline";
import { PassThrough } from "node:stream";
import { Failure } from "../failure.ts";

/** Of a piped password; nothing as long is one. */
const MAX_BYTES = 65_536;

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
    return (await readAll(stdin)).replace(/\r?\n$/, "");
  }
  if (stdin.isTTY !== true) {
    throw new Failure("usage", "give the password on standard input, with --password-stdin");
  }
  const [password, again] = await askHidden(streams, ["Password: ", "Once more: "]);
  if (password === again) return password as string;
  throw new Failure("usage", "the two passwords differ; nothing was done");
};

const readAll = async (input: AsyncIterable<string | Buffer>): Promise<string> => {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of input) {
    chunks.push(Buffer.from(chunk as string));
    length += chunk.length;
    if (length > MAX_BYTES) throw new Failure("usage", `no password has ${MAX_BYTES} bytes`);
  }
  return Buffer.concat(chunks).toString();
};

/** The answers to questions, none of which is shown. */
const askHidden = async (
  { stdin, stderr }: PasswordStreams,
  questions: readonly string[],
): Promise<string[]> => {
  const unseen = new PassThrough().resume();
  const prompt = createInterface({ input: stdin, output: unseen, terminal: true, historySize: 0 });
  let wasInterrupted = false;
  prompt.on("SIGINT", () => {
    wasInterrupted = true;
    prompt.close();
  });
  // Keeps lines that came before their question, as when both are pasted.
  const lines = prompt[Symbol.asyncIterator]();
  const answers: string[] = [];
  try {
    for (const question of questions) {
      stderr.write(question);
      const { done, value } = await lines.next();
      stderr.write("\n");
      if (done !== true) answers.push(value);
      else if (wasInterrupted) throw new Failure("interrupted", "interrupted; nothing was done");
      else throw new Failure("usage", "not answered; nothing was done");
    }
    return answers;
  } finally {
    prompt.close();
  }
};
