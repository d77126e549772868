/**
 * The device's side on Espruino: `serialLinksOf(Serial1, …)` in place of WebSocket links, for a
 * board without Wi-Fi. The console must not be on that port: `Serial1.setConsole(false)` or
 * `E.setConsole(null)` first, and XON/XOFF must be off, as frames use every byte.
 *
 * [portable]
 */
import type { Random, TimerPort } from "../ports.ts";
import type { Checksum } from "./frames.ts";
import { SerialLinks } from "./links.ts";

/** `Serial1` and its kin. */
export interface EspruinoSerial {
  on(event: "data", fn: (text: string) => void): void;
  write(bytes: Uint8Array): void;
}

/** Links over a UART. `checksum`: `E.CRC32` where the board has it, else plainChecksum. */
export const serialLinksOf = (
  port: EspruinoSerial,
  timer: TimerPort,
  random: Random,
  checksum: Checksum,
  maxMessage: number,
): SerialLinks => {
  const links = new SerialLinks({
    write: (bytes) => port.write(bytes),
    timer: timer,
    random: random,
    checksum: checksum,
    maxMessage: maxMessage,
    window: maxMessage,
  });
  port.on("data", (text) => {
    // Strings are 8-bit there: one character a byte.
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    links.receive(bytes);
  });
  return links;
};
