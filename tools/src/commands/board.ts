/** What the commands for boards share: the port's options, and a board's prompt for one command. */
import { type Command, InvalidArgumentError } from "commander";
import { DEFAULT_BAUD_RATE, openPort } from "../repl/port.ts";
import { EspruinoRepl } from "../repl/repl.ts";
import { ADDRESS_FORMS } from "../serial/address.ts";

export const PORT_HELP = ADDRESS_FORMS;

export const baudRate = (value: string): number => {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 300 && number <= 4_000_000) return number;
  throw new InvalidArgumentError("a whole number from 300 to 4000000");
};

export const withBaud = (command: Command): Command =>
  command.option("--baud <rate>", "of a serial port", baudRate, DEFAULT_BAUD_RATE);

/** Opens the port, hands its console on, and closes it whatever happens. */
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
