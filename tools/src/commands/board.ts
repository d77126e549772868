/** What the commands for boards share: the port's options, and a board's prompt for one command. */
import type { Command } from "commander";
import { DEFAULT_BAUD_RATE, openPort } from "../repl/port.ts";
import { EspruinoRepl } from "../repl/repl.ts";
import { wholeNumber } from "./number-flags.ts";

export const baudRate = wholeNumber(300, 4_000_000);

export const withBaud = (command: Command): Command =>
  command.option("--baud <rate>", "of a serial port", baudRate, DEFAULT_BAUD_RATE);

/** Opens the port, passes its console on, and closes it in any case. */
export const withConsole = async <Result>(
  port: string,
  baud: number,
  use: (board: EspruinoRepl) => Promise<Result>,
): Promise<Result> => {
  const board = new EspruinoRepl(await openPort(port, baud));
  try {
    return await use(board);
  } finally {
    await board.close();
  }
};
