/**
 * The device's side on Node, for a Linux board with a UART, or a test. Any Duplex works: a
 * serialport, a TCP socket, or a pair of streams on a tty.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { crc32 } from "node:zlib";
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import type { LinkPort } from "../ports.ts";
import { SerialLinks } from "../serial/links.ts";
import { FrameReader } from "../serial/reader.ts";
import { maxBody } from "../serial/wire.ts";
import { wakeEventLoop } from "./wake-event-loop.ts";

export { wakeEventLoop };

/** Two of the longest messages, so that one is in transit while another is being handled. */
const WINDOW_BYTES = 2 * MAX_MESSAGE_BYTES;

/**
 * Links over an open line. The caller handles the line's own errors and end; the core detects a
 * silent line.
 */
export const serialLinks = (line: Duplex): LinkPort => {
  const checksum = (bytes: Uint8Array): number => crc32(bytes);
  const links = new SerialLinks({
    write: (bytes) => {
      // Its result reaches the SDK through `queued`.
      if (line.writable) line.write(bytes);
    },
    queued: () => line.writableLength,
    timer: systemTimer(),
    life: randomBytes(4).readUInt32BE(),
    checksum,
    maxMessage: MAX_MESSAGE_BYTES,
    window: WINDOW_BYTES,
  });
  const reader = new FrameReader(maxBody(MAX_MESSAGE_BYTES), checksum, (type, body) =>
    links.receiveFrame(type, body),
  );
  wakeEventLoop(line);
  line.on("data", (bytes: Uint8Array) => reader.receive(bytes));
  return links;
};
