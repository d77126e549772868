/** What the commands for boards share: the port's options, and a board's prompt for one command. */

import { EspruinoRepl } from "@blindrelay/agent-sdk/board";
import { wholeNumber } from "@blindrelay/protocol/command-line";
import type { Command } from "../base/command.ts";
import { DEFAULT_BAUD_RATE, openPort, type PortFlags } from "../repl/port.ts";
import { onOff } from "./number-flags.ts";

export const baudRate = wholeNumber(300, 4_000_000);

export const withLineFlags = (command: Command): Command =>
  command
    .option("--dtr <on|off>", "set this line as soon as the port is open", onOff)
    .option("--rts <on|off>", "set this line as soon as the port is open", onOff)
    .option("--hupcl <on|off>", "off: leave both lines as they are when it is closed", onOff);

export const withBaud = (command: Command): Command =>
  withLineFlags(command.option("--baud <rate>", "of a serial port", baudRate, DEFAULT_BAUD_RATE));

/** Opens the port, passes its console on, and closes it in any case. */
export const withConsole = async <Result>(
  port: string,
  line: PortFlags,
  use: (board: EspruinoRepl) => Promise<Result>,
): Promise<Result> => {
  const board = new EspruinoRepl(await openPort(port, line));
  try {
    return await use(board);
  } finally {
    await board.close();
  }
};
