/**
 * Messages between device and bridge, each in a frame. The device runs the SDK; the bridge holds
 * the WebSocket and carries the device's messages one to one, unread.
 *
 *   HELLO   version 1 B, role 1 B, wants answer 1 B, life 4 B, max message 4 B, window 4 B
 *   OPEN    link 2 B                           device: connect to the relay
 *   OPENED  link 2 B                           bridge: connected
 *   TEXT    link 2 B, offset 4 B, ASCII text   one message; offset: bytes of texts sent before it
 *   CLOSE   link 2 B, code 2 B, ASCII reason   device: disconnect; bridge: disconnected
 *   CREDIT  link 2 B, limit 4 B                texts may be sent up to this offset
 *   PROBE   link 2 B, offset 4 B               so much was sent: is there credit?
 *
 * Numbers are big-endian. Offsets count from 0 on every link, modulo 2^32; the first limit is the
 * window in the peer's HELLO. Because a TEXT contains its offset, a lost one loses no credit.
 * `life` changes whenever an end starts, so that each end notices the other's restart. An unknown
 * version is answered with a HELLO and nothing else. New fields are added at the end, and readers
 * that do not know them skip them.
 *
 * [portable]
 */

export const SERIAL_VERSION = 1;

export const ROLE_DEVICE = 1;
export const ROLE_BRIDGE = 2;

export const FRAME_HELLO = 1;
export const FRAME_OPEN = 2;
export const FRAME_OPENED = 3;
export const FRAME_TEXT = 4;
export const FRAME_CLOSE = 5;
export const FRAME_CREDIT = 6;
export const FRAME_PROBE = 7;

/** Link and offset before a text. */
export const TEXT_HEAD_BYTES = 6;

/** Bytes of any frame's body if the longest text has `maxMessage` bytes. */
export const maxBody = (maxMessage: number): number => Math.max(maxMessage, 64) + TEXT_HEAD_BYTES;

export interface Hello {
  readonly version: number;
  readonly role: number;
  /** Whether the sender does not know the receiver yet. */
  readonly wantsAnswer: boolean;
  readonly life: number;
  /** Bytes of the longest text that the sender accepts. */
  readonly maxMessage: number;
  /**
   * Bytes of texts that it accepts before its first CREDIT. If this is less than maxMessage, a
   * longer text may be sent when nothing else is out.
   */
  readonly window: number;
}

const put16 = (bytes: Uint8Array, at: number, value: number): void => {
  bytes[at] = (value >>> 8) & 255;
  bytes[at + 1] = value & 255;
};

const put32 = (bytes: Uint8Array, at: number, value: number): void => {
  put16(bytes, at, value >>> 16);
  put16(bytes, at + 2, value & 65535);
};

export const get16 = (bytes: Uint8Array, at: number): number =>
  ((bytes[at] as number) << 8) | (bytes[at + 1] as number);

export const get32 = (bytes: Uint8Array, at: number): number =>
  ((get16(bytes, at) << 16) | get16(bytes, at + 2)) >>> 0;

const HELLO_BYTES = 15;

export const encodeHello = (hello: Hello): Uint8Array => {
  const bytes = new Uint8Array(HELLO_BYTES);
  bytes[0] = hello.version;
  bytes[1] = hello.role;
  bytes[2] = hello.wantsAnswer ? 1 : 0;
  put32(bytes, 3, hello.life);
  put32(bytes, 7, hello.maxMessage);
  put32(bytes, 11, hello.window);
  return bytes;
};

/** null if it is too short; for another version only `version` is valid. */
export const decodeHello = (bytes: Uint8Array): Hello | null => {
  if (bytes.length < HELLO_BYTES) return null;
  return {
    version: bytes[0] as number,
    role: bytes[1] as number,
    wantsAnswer: bytes[2] === 1,
    life: get32(bytes, 3),
    maxMessage: get32(bytes, 7),
    window: get32(bytes, 11),
  };
};

/** OPEN and OPENED. */
export const encodeLink = (link: number): Uint8Array => {
  const bytes = new Uint8Array(2);
  put16(bytes, 0, link);
  return bytes;
};

/** CREDIT and PROBE. */
export const encodeCount = (link: number, count: number): Uint8Array => {
  const bytes = new Uint8Array(6);
  put16(bytes, 0, link);
  put32(bytes, 2, count);
  return bytes;
};

export const encodeText = (link: number, offset: number, text: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(TEXT_HEAD_BYTES + text.length);
  put16(bytes, 0, link);
  put32(bytes, 2, offset);
  bytes.set(text, TEXT_HEAD_BYTES);
  return bytes;
};

export const encodeClose = (link: number, code: number, reason: Uint8Array): Uint8Array => {
  const bytes = new Uint8Array(4 + reason.length);
  put16(bytes, 0, link);
  put16(bytes, 2, code);
  bytes.set(reason, 4);
  return bytes;
};
