/**
 * The head of a bus message: one line of words, such as `msg a41f 7 user hash`, before the bytes as
 * received. Words are identifiers, numbers and hashes, which contain no spaces.
 */
import { Malformed } from "./bodies.ts";

export interface BusMessage {
  readonly words: readonly string[];
  readonly body: Uint8Array;
}

const LINE_END = 0x0a;
/** Longer than any head that nodes write. */
export const MAX_HEAD_BYTES = 512;

export const encodeBusMessage = (
  words: readonly (string | number)[],
  body: Uint8Array | string = "",
): Uint8Array => {
  const head = `${words.join(" ")}\n`;
  if (typeof body === "string") return Buffer.from(head + body);
  const message = Buffer.allocUnsafe(head.length + body.length);
  message.write(head, "latin1");
  message.set(body, head.length);
  return message;
};

/** Throws Malformed. */
export const decodeBusMessage = (message: Uint8Array): BusMessage => {
  const bytes = Buffer.from(message.buffer, message.byteOffset, message.byteLength);
  const end = bytes.indexOf(LINE_END);
  if (end < 0 || end > MAX_HEAD_BYTES) throw new Malformed("no head");
  return { words: bytes.toString("latin1", 0, end).split(" "), body: bytes.subarray(end + 1) };
};
