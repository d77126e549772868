/** What the help and the errors of all three commands have in common. No I/O of its own. */

export { addCompletion, OFFERS } from "./completion.ts";
export { qrCodeFor } from "./qr-code.ts";

/** Why a command exits with a code other than 0 (docs/commands.md, "Exit codes"). */
export const EXIT = {
  expectation: 1,
  usage: 2,
  agentError: 3,
  unreachable: 4,
  refused: 5,
  timeout: 6,
  device: 7,
  fault: 70,
  interrupted: 130,
} as const;

export type FailureKind = keyof typeof EXIT;

/** `message` names the cause and its fix, for a person; it contains no secret. */
export class Failure extends Error {
  readonly kind: FailureKind;
  readonly exitCode: number;

  constructor(kind: FailureKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "Failure";
    this.kind = kind;
    this.exitCode = EXIT[kind];
  }
}

/** Of whatever was thrown. */
export const messageOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error);

/** A Failure in place of what a user can mend, such as a current folder that was removed. */
export const asFailure = (thrown: unknown): unknown =>
  (thrown as { readonly syscall?: unknown } | null)?.syscall === "uv_cwd"
    ? new Failure("usage", "the current folder was removed: change to another one", thrown)
    : thrown;

/**
 * A variable's value without what it did not mean: line ends, and the quotation marks that
 * `docker --env-file` leaves. Null: unset, or empty, which CI systems set.
 */
export const givenText = (value: string | undefined): string | null =>
  value
    ?.trim()
    .replace(/^(["'])(.*)\1$/s, "$2")
    .trim() || null;

/** Of whatever a program threw. */
export const textOfThrown = (error: unknown): string => {
  try {
    return String(error);
  } catch {
    return "something that cannot be shown"; // such as an object without a prototype
  }
};

/** As commander's InvalidArgumentError: the value of a flag is refused with this message. */
class InvalidValue extends Error {
  readonly code = "commander.invalidArgument";
  readonly exitCode = 1;
}

/** Reads the value of a flag. `most`: null for no limit. */
export const wholeNumber =
  (least: number, most: number | null) =>
  (text: string): number => {
    const number = /^[0-9]+$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= (most ?? Number.MAX_SAFE_INTEGER)) return number;
    const range = most === null ? `of at least ${least}` : `from ${least} to ${most}`;
    throw new InvalidValue(`a whole number ${range}`);
  };

/** Commander's Command, as far as it is used here. */
interface CommandLine {
  readonly commands: readonly CommandLine[];
  name(): string;
  createHelp(): { commandUsage(command: CommandLine): string };
  showHelpAfterError(text: string): unknown;
  configureHelp(configuration: { minWidthToWrap: number }): unknown;
  configureOutput(configuration: { writeOut(text: string): void }): unknown;
}

interface Output {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

/** Descriptions are wrapped in a column of at least this many characters. */
const NARROWEST = 12;

const isProse = (line: string): boolean => /^\S/.test(line) && !/\S {2,}\S/.test(line);

const wrapLine = (line: string, width: number): string => {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > width) {
    const at = rest.lastIndexOf(" ", width);
    if (at <= 0) break;
    lines.push(rest.slice(0, at));
    rest = rest.slice(at + 1);
  }
  return [...lines, rest].join("\n");
};

/** Lines of prose as wide as the terminal; examples and tables stay as they are. */
export const wrapHelp = (text: string, width: number): string =>
  text
    .split("\n\n")
    .map((paragraph) => {
      const lines: string[] = [];
      const tooWide = paragraph.split("\n").some((line) => isProse(line) && line.length > width);
      if (!tooWide) return paragraph;
      for (const line of paragraph.split("\n")) {
        const before = lines.at(-1);
        if (before !== undefined && isProse(before) && isProse(line)) {
          lines[lines.length - 1] = `${before} ${line}`;
        } else lines.push(line);
      }
      return lines.map((line) => (isProse(line) ? wrapLine(line, width) : line)).join("\n");
    })
    .join("\n\n");

/** For a command and all below it: errors end with the usage, and help fits the terminal. */
export const tidyCommands = (command: CommandLine, output: Output): void => {
  command.showHelpAfterError(`Usage: ${command.createHelp().commandUsage(command)}`);
  command.configureHelp({ minWidthToWrap: NARROWEST });
  command.configureOutput({
    writeOut: (text) =>
      output.write(output.isTTY === true && output.columns ? wrapHelp(text, output.columns) : text),
  });
  for (const inner of command.commands) tidyCommands(inner, output);
};

/** A key of 32 bytes as base64url, or a list of such, that begins like an option. */
const DASHED_KEY = /^-[A-Za-z0-9_-]{42}(?:,|$)/;

/**
 * A command line in which a key that begins with "-" belongs to the option before it: a parser
 * would take it for options of its own, such as -V.
 */
export const joinKeys = (words: readonly string[]): string[] => {
  const joined: string[] = [];
  for (const word of words) {
    const before = joined.at(-1) ?? "";
    if (DASHED_KEY.test(word) && /^--[a-z][a-z-]*$/.test(before)) {
      joined[joined.length - 1] = `${before}=${word}`;
    } else joined.push(word);
  }
  return joined;
};
