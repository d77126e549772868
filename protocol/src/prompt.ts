/**
 * Questions to the user at the terminal, on standard error like everything that is not a result.
 */
import { createInterface } from "node:readline";
import { Writable } from "node:stream";
import { Failure } from "./command-line.ts";
import { decodeText } from "./parse-json.ts";

/** A person ended a question in place of an answer. */
export class Unanswered extends Failure {
  declare readonly kind: "interrupted" | "usage";
  readonly why: string;

  constructor(kind: "interrupted" | "usage", why: string) {
    super(kind, `${why}; nothing was done`);
    this.why = why;
  }
}

export interface Questions {
  /** The text typed until Enter. Rejects with Unanswered: Ctrl-C interrupted, Ctrl-D usage. */
  ask(question: string): Promise<string>;
  /** The same, without showing it. */
  askHidden(question: string): Promise<string>;
}

export interface Terminal {
  readonly stdin: NodeJS.ReadableStream & { readonly isTTY?: boolean };
  readonly stderr: NodeJS.WritableStream;
}

/**
 * What was piped in. Throws a Failure (usage) if it is not UTF-8: two passwords would become equal
 * if what is not were replaced.
 */
export const pipedText = (bytes: Uint8Array): string => {
  try {
    return decodeText(bytes);
  } catch (error) {
    throw new Failure("usage", `standard input is ${(error as Error).message}`, error);
  }
};

/**
 * Holds the terminal while `use` asks. Rejects with a Failure (usage) if there is no terminal;
 * `instead` says what to do then.
 */
export const asking = async <T>(
  instead: string,
  use: (person: Questions) => Promise<T>,
  { stdin, stderr }: Terminal = process,
): Promise<T> => {
  if (stdin.isTTY !== true)
    throw new Failure("usage", `there is no terminal to ask on: ${instead}`);
  let hidden = true;
  const output = new Writable({
    write: (chunk, _encoding, done) => {
      if (!hidden) stderr.write(chunk);
      done();
    },
  });
  // Without a history, which the next question would show: it has passwords.
  const prompt = createInterface({ input: stdin, output, terminal: true, historySize: 0 });
  /** Lines that came before their question: pasted, or typed ahead. */
  const early: string[] = [];
  let answer: PromiseWithResolvers<string> | null = null;
  let over: Unanswered | null = null;
  prompt.on("line", (line) => {
    // What follows may be a password, whose question comes in a moment.
    hidden = true;
    if (answer === null) early.push(line);
    else answer.resolve(line);
    answer = null;
  });
  const end = (reason: Unanswered) => {
    if (over !== null) return;
    over = reason;
    stderr.write("\n");
    answer?.reject(reason);
  };
  prompt.on("SIGINT", () => end(new Unanswered("interrupted", "interrupted")));
  prompt.on("close", () => end(new Unanswered("usage", "not answered")));
  const ask = async (question: string, isHidden: boolean): Promise<string> => {
    const line = await next(question, isHidden);
    // See pipedText.
    if (line.includes("\ufffd")) {
      throw new Failure("usage", "this terminal does not send UTF-8: set it to UTF-8");
    }
    return line;
  };
  const next = async (question: string, isHidden: boolean): Promise<string> => {
    const line = early.shift();
    if (line !== undefined) {
      stderr.write(`${question}${isHidden ? "" : line}\n`);
      return line;
    }
    if (over !== null) throw over;
    answer = Promise.withResolvers();
    const { promise } = answer;
    if (isHidden) stderr.write(question);
    hidden = isHidden;
    prompt.setPrompt(isHidden ? "" : question);
    prompt.prompt(true);
    const typed = await promise;
    if (isHidden) stderr.write("\n");
    return typed;
  };
  try {
    return await use({
      ask: (question) => ask(question, false),
      askHidden: (question) => ask(question, true),
    });
  } finally {
    over = new Unanswered("usage", "not answered");
    prompt.close();
  }
};
