/**
 * `blindrelay token`: identifies a token and checks its checksum. The token is never printed, and
 * never accepted as an argument.
 */
import { readToken, TOKEN_NAMES, TOKEN_PREFIXES, type TokenKind } from "@blindrelay/protocol";
import { Failure } from "@blindrelay/protocol/command-line";
import { asking } from "@blindrelay/protocol/prompt";
import type { Command } from "../base/command.ts";
import { readInput } from "../base/first-lines.ts";
import { type JsonFlag, printResult } from "../base/output.ts";
import type { Context } from "./context.ts";

const USES: { readonly [kind in TokenKind]: string } = {
  account: "a person's client shows it to the relay: BLINDRELAY_ACCOUNT_TOKEN",
  agent: "one firmware shows it to the relay: BLINDRELAY_RELAY_TOKEN",
  session: "made by the relay at a login; 24 h or 10,000 requests",
  key: "in place of an account token, with less reach: BLINDRELAY_ACCOUNT_TOKEN",
  login: "made by the relay after password and code; 1 h, REST only",
  e2e: "one agent and its clients share it, the relay never sees it: BLINDRELAY_AGENT_TOKEN",
  push: "in a file for --push-key: a device that has it takes only programs proven with it",
};

interface TokenReport {
  readonly kind: TokenKind | null;
  readonly valid: boolean;
  readonly meaning: string;
  /** The problem; null if there is none. */
  readonly problem: string | null;
}

/** Describes a text without revealing any part of it. */
export const describeToken = (given: string): TokenReport => {
  const trimmed = given.trim();
  const reading = readToken(trimmed);
  const { kind } = reading;
  const meaning = kind === null ? "not a blindrelay token" : `${TOKEN_NAMES[kind]}: ${USES[kind]}`;
  const wrong = (problem: string): TokenReport => ({ kind, valid: false, meaning, problem });
  if (!reading.ok && reading.reason === "checksum") {
    return wrong("its checksum does not match: a character was lost, added or changed");
  }
  if (!reading.ok && kind !== null) {
    return wrong(
      `its form is wrong: 49 letters and digits follow the prefix, here ${trimmed.length - trimmed.indexOf("_") - 1}`,
    );
  }
  if (!reading.ok)
    return wrong(`it begins with none of ${Object.values(TOKEN_PREFIXES).join(", ")}`);
  if (trimmed !== given)
    return wrong("there is white space around it; tokens are used without trimming");
  return { kind, valid: true, meaning, problem: null };
};

const ask = (): Promise<string> =>
  asking("pipe it in", (person) => person.askHidden("Token (not shown): "));

export const addToken = (cli: Command, _context: Context): void => {
  cli
    .command("token")
    .description("identify a token and check its checksum, without printing it")
    .option("--json", "one JSON document")
    .example(`
  blindrelay token < token.txt

Reads it from standard input, because arguments show in process lists. Exits with 1 if the input is not a valid token.`)
    .action(async (flags: JsonFlag) => {
      const given = process.stdin.isTTY ? await ask() : await readInput(process.stdin);
      const report = describeToken(given.replace(/\r?\n$/, ""));
      const { meaning, problem } = report;
      printResult(flags, report, problem === null ? `${meaning}; its checksum is right` : meaning);
      if (problem !== null) throw new Failure("expectation", problem);
    });
};
