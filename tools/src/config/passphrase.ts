/** Asks for a passphrase on the terminal itself, so that standard input stays free for data. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync, readSync, writeSync } from "node:fs";
import { Failure } from "../failure.ts";

export const PASSPHRASE_VARIABLE = "BLINDRELAY_PASSPHRASE";
const NEWLINE = 10;

/** Waits for a line that is not shown. Throws a Failure (usage) if there is no terminal. */
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
  const echo = (how: "echo" | "-echo"): void => {
    spawnSync("stty", [how], { stdio: [terminal, "ignore", "ignore"] });
  };
  try {
    writeSync(terminal, `${question}: `);
    echo("-echo");
    const bytes: number[] = [];
    const byte = Buffer.alloc(1);
    while (readSync(terminal, byte, 0, 1, null) === 1 && byte[0] !== NEWLINE) {
      bytes.push(byte[0] as number);
    }
    return Buffer.from(bytes).toString("utf8");
  } finally {
    echo("echo");
    writeSync(terminal, "\n");
    closeSync(terminal);
  }
};
