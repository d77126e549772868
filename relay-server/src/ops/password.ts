/** A new password for a user, from standard input or from the person at the terminal. */
import { Failure } from "@blindrelay/protocol/command-line";
import { asking, pipedText, type Questions, type Terminal } from "@blindrelay/protocol/prompt";

/** Of a piped password; nothing as long is one. */
const MAX_BYTES = 65_536;

/** What the flag says of itself. */
export const PASSWORD_STDIN =
  "read the password from standard input, one line end removed; without it, the terminal asks";

/**
 * With `--password-stdin` it reads to the end and removes one line end; without, it asks at the
 * terminal, twice. Rejects with a Failure: usage if there is no terminal or the answers differ,
 * interrupted for Ctrl-C.
 */
export const readPassword = async (
  isPiped: boolean | undefined,
  streams: Terminal = process,
): Promise<string> => {
  const { stdin, stderr } = streams;
  if (isPiped === true) {
    if (stdin.isTTY === true) {
      stderr.write("Type the password (it is shown), then Enter and Ctrl-D.\n");
    }
    return pipedText(await readAll(stdin)).replace(/\r?\n$/, "");
  }
  const ask = async ({ askHidden }: Questions): Promise<[string, string]> => [
    await askHidden("Password: "),
    await askHidden("Once more: "),
  ];
  const instead = "give the password on standard input, with --password-stdin";
  const [password, again] = await asking(instead, ask, streams);
  if (password === again) return password;
  throw new Failure("usage", "the two passwords differ; nothing was done");
};

const readAll = async (input: AsyncIterable<string | Buffer>): Promise<Buffer> => {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of input) {
      chunks.push(Buffer.from(chunk as string));
      length += chunk.length;
      if (length > MAX_BYTES) throw new Failure("usage", `no password has ${MAX_BYTES} bytes`);
    }
  } catch (error) {
    if (error instanceof Failure) throw error;
    // A socket that was reset, a terminal that is gone.
    const why = (error as Error).message;
    throw new Failure("usage", `standard input cannot be read: ${why}`, error);
  }
  return Buffer.concat(chunks);
};
