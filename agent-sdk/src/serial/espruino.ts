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
 * have to be allocated permanently.
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
  const longest = frameBytes(maxBody(maxMessage));
  let held = "";
  const hear = (text: string): void => {
    const pieces = text.split("\0");
    for (let i = 0; i < pieces.length; i++) {
      if (i > 0 && held !== "") {
        // Strings are 8-bit there: one character per byte.
        const frame = decodeFrame(E.toUint8Array(held), checksum);
        held = "";
        if (frame !== null) links.receiveFrame(frame[0] as number, frame.subarray(1));
      }
      // What is too long is truncated, so its checksum is wrong.
      if (held.length <= longest) held += pieces[i] as string;
    }
  };
  return {
    connect: (url, events) => {
      // A board removes a listener in which it ran out of memory; a stopped agent leaves its own.
      port.removeAllListeners("data");
      port.on("data", hear);
      return links.connect(url, events);
    },
  };
};
