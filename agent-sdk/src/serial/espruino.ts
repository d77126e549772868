/**
 * The device's side on Espruino: links over a UART instead of WebSockets, for a board without a
 * network. The console must not be on it, and XON/XOFF must be off, because frames use every byte
 * value.
 *
 * [portable]
 */
import type { LinkPort, TimerPort } from "../ports.ts";
import type { Checksum } from "./frames.ts";
import { decodeFrame, frameBytes } from "./frames.ts";
import { SerialLinks } from "./links.ts";
import { maxBody } from "./wire.ts";

/** `Serial1` and similar. */
export interface EspruinoSerial {
  setup(baud: number, options: object): void;
  on(event: "data", fn: (text: string) => void): void;
  removeAllListeners(event: "data"): void;
  write(bytes: Uint8Array): void;
}

declare const E: { toUint8Array(text: string): Uint8Array };

/**
 * Links over a configured UART. `life`: see SerialLinksOptions. `maxMessage`: bytes. `inputBytes`:
 * size of the buffer that the board receives into.
 *
 * While the board handles a message it does not read, so no more is sent than the buffer holds. A
 * quarter of it is for the frames around the texts, and the 2 bytes that it adds to each 63.
 *
 * Received bytes are held as text until their border, because a buffer for the longest frame would
 * have to be allocated permanently. Each frame is read in a turn of its own: a small board has
 * memory for one message at a time, and received data occupies some until its listener returns.
 */
export const serialLinksOf = (
  port: EspruinoSerial,
  timer: TimerPort,
  life: number,
  checksum: Checksum,
  maxMessage: number,
  inputBytes: number,
): LinkPort => {
  const links = new SerialLinks({
    write: (bytes) => port.write(bytes),
    timer: timer,
    life: life,
    checksum: checksum,
    maxMessage: maxMessage,
    window: (inputBytes * 3) >> 2,
  });
  const most = frameBytes(maxBody(maxMessage)) + inputBytes;
  let held = "";
  let isDue = false;
  const readOn = (): void => {
    const end = held.indexOf("\0");
    isDue = end >= 0;
    if (!isDue) return;
    // First: a turn that runs out of memory ends anywhere.
    timer.set(0, readOn);
    const text = held.substring(0, end);
    held = held.substring(end + 1);
    if (text === "") return;
    // Strings are 8-bit there: one character per byte.
    const frame = decodeFrame(E.toUint8Array(text), checksum);
    if (frame !== null) links.receiveFrame(frame[0] as number, frame.subarray(1));
  };
  const hear = (text: string): void => {
    // A bridge sends no more; noise may have no border.
    held = held.length + text.length > most ? "" : held + text;
    if (isDue) return;
    isDue = true;
    timer.set(0, readOn);
  };
  return {
    connect: (url, events) => {
      // A board removes a listener in which it ran out of memory; a stopped agent leaves its own.
      port.removeAllListeners("data");
      isDue = false;
      port.on("data", hear);
      return links.connect(url, events);
    },
  };
};
