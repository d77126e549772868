/**
 * Questions to the user at the terminal, on standard error like everything that is not a result.
 */
import { createInterface } from "node:readline/promises";
import { Writable } from "node:stream";
import { Failure } from "@blindrelay/protocol/command-line";

/** A person ended a question in place of an answer. */
export class Unanswered extends Failure {
  declare readonly kind: "interrupted" | "usage";
  readonly why: string;

  constructor(kind: "interrupted" | "usage", why: string, cause: unknown) {
    super(kind, `${why}; nothing was done`, cause);
    this.why = why;
  }
}

export interface Questions {
  /** The text typed until Enter. Rejects with Unanswered: Ctrl-C interrupted, Ctrl-D usage. */
  ask(question: string): Promise<string>;
  /** The same, without showing it. */
  askHidden(question: string): Promise<string>;
  close(): void;
}

/**
 * Must be closed, because it holds the terminal. Throws a Failure (usage) if there is no terminal;
 * `instead` says what to do then.
 */
export const questions = (instead: string): Questions => {
  if (!process.stdin.isTTY)
    throw new Failure("usage", `there is no terminal to ask on: ${instead}`);
  let hidden = false;
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      if (!hidden) process.stderr.write(chunk);
      done();
    },
  });
  const prompt = createInterface({ input: process.stdin, output, terminal: true });
  const interruption = new AbortController();
  const { signal } = interruption;
  prompt.on("SIGINT", () => interruption.abort());
  const ask = async (question: string): Promise<string> => {
    try {
      return await prompt.question(question, { signal });
    } catch (error) {
      if ((error as Error).name !== "AbortError") throw error;
      process.stderr.write("\n");
      throw signal.aborted
        ? new Unanswered("interrupted", "interrupted", error)
        : new Unanswered("usage", "not answered", error);
    }
  };
  return {
    ask,
    askHidden: async (question) => {
      process.stderr.write(question);
      hidden = true;
      try {
        return await ask("");
      } finally {
        hidden = false;
        process.stderr.write("\n");
      }
    },
    close: () => prompt.close(),
  };
};
