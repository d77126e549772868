/**
 * A board's connection to the relay over a UART with a bridge at its other end.
 *
 * [portable]
 */
import { own } from "@blindrelay/protocol/crypto";
import type { EspruinoSerial } from "../serial/espruino.ts";
import { serialLinksOf } from "../serial/espruino.ts";
import type { BoardLinks } from "./agent.ts";
import { crc32 } from "./natives.ts";
import { boardTimer } from "./ports.ts";

declare const E: {
  /** "Limbo" in the first second, on boards with USB. */
  getConsole(): string | null;
  setConsole(device: string | null, options: { force: boolean }): void;
};
declare const process: {
  memory(collect: boolean): { readonly rx?: { readonly total: number } };
};
declare const global: { readonly [name: string]: EspruinoSerial | undefined };

/** Bytes that a board with enough memory for the SDK receives into; from 2v30 on it tells. */
const INPUT_BYTES = 1024;

const consoleFor = (line: string): string | null => {
  const now = E.getConsole();
  if (now !== line && now !== "Limbo") return now;
  for (const name of ["USB", "Bluetooth", "Serial1"])
    if (name !== line && global[name] !== undefined) return name;
  return null;
};

export const uartLinks: BoardLinks = (config, bootCount, maxMessage) => {
  const serial = config.serial;
  if (serial === undefined) throw new Error("blindrelay.json: serial is missing");
  // Accessed by name: other members of this name are internal to the file, and shortened there.
  const options = own(serial, "options") as object | undefined;
  const port = global[serial.port];
  if (port === undefined) throw new Error(`this board has no ${serial.port}`);
  // Forced: otherwise Espruino moves it to a UART when USB or Bluetooth disconnects.
  E.setConsole(consoleFor(serial.port), { force: true });
  port.setup(serial.baud, options === undefined ? {} : options);
  const input = process.memory(false).rx;
  const inputBytes = input === undefined ? INPUT_BYTES : input.total;
  return serialLinksOf(port, boardTimer, bootCount, crc32, maxMessage, inputBytes);
};
