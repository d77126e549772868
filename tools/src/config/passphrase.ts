/** Asks for a passphrase on the terminal itself, so that standard input stays free for data. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { Failure } from "@blindrelay/protocol/command-line";

export const PASSPHRASE_VARIABLE = "BLINDRELAY_PASSPHRASE";

const KEYS = {
  interrupt: 3,
  end: 4,
  eraseBack: 8,
  newline: 10,
  enter: 13,
  eraseAll: 21,
  erase: 127,
};

/** Without the bytes of the last character, of which all but the first are 0b10xxxxxx. */
const withoutLast = (bytes: readonly number[]): number[] => {
  const start = bytes.findLastIndex((byte) => (byte & 0xc0) !== 0x80);
  return bytes.slice(0, Math.max(0, start));
};

/** A line as a terminal in its own mode would edit it. Throws a Failure for Ctrl-C and Ctrl-D. */
const readLine = (terminal: number): string => {
  let bytes: number[] = [];
  const byte = Buffer.alloc(1);
  for (;;) {
    const key = readSync(terminal, byte, 0, 1, null) === 1 ? byte[0] : KEYS.end;
    if (key === KEYS.newline || key === KEYS.enter) return Buffer.from(bytes).toString("utf8");
    if (key === KEYS.interrupt) throw new Failure("interrupted", "interrupted; nothing was done");
    if (key === KEYS.end) throw new Failure("usage", "not answered; nothing was done");
    if (key === KEYS.eraseAll) bytes = [];
    else if (key === KEYS.erase || key === KEYS.eraseBack) bytes = withoutLast(bytes);
    else bytes.push(key as number);
  }
};

/**
 * Waits for a line that is not shown. Throws a Failure: usage if there is no terminal or no answer,
 * interrupted for Ctrl-C.
 */
export const askPassphrase = (question: string): string => {
  let terminal: number;
  try {
    terminal = openSync("/dev/tty", "r+");
  } catch (error) {
    throw new Failure(
      "usage",
      `the profile is encrypted with a passphrase, and there is no terminal to ask for it: set ${PASSPHRASE_VARIABLE}`,
      error,
    );
  }
  // Null if there is no such program.
  const stty = (...words: string[]): string | null =>
    spawnSync("stty", words, { stdio: [terminal, "pipe", "ignore"], encoding: "utf8" }).stdout;
  const before = stty("-g")?.trim();
  if (before === undefined) {
    closeSync(terminal);
    throw new Failure(
      "usage",
      `stty is missing, which hides what is typed: set ${PASSPHRASE_VARIABLE}`,
    );
  }
  try {
    // Byte by byte: a signal would end the process with a terminal that shows nothing.
    stty("-echo", "-icanon", "-isig");
    writeSync(terminal, `${question}: `);
    return readLine(terminal);
  } finally {
    stty(before);
    writeSync(terminal, "\n");
    closeSync(terminal);
  }
};
