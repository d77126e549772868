/**
 * RFC 6455 frames, as far as the relay handles them itself (section 5.2): the frames that it
 * writes, and the header that it reads to find the length of a frame.
 */
import type { Frame } from "../core/link.ts";

export const FIN_TEXT = 0x81;
const FIN_CLOSE = 0x88;
export const FIN_PING = 0x89;
export const FIN_PONG = 0x8a;
export const MASKED = 0x80;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
export const MASK_BYTES = 4;
const FIRST_CONTROL_OPCODE = 0x08;
export const OP_CLOSE = 0x08;
/** Section 5.5. */
export const MAX_CONTROL_PAYLOAD = 125;

/** A frame's length from its header. */
interface FrameHead {
  /** Bytes of the header, the mask included. */
  headerLength: number;
  payloadLength: number;
  fin: boolean;
  opcode: number;
}

export const isControl = (opcode: number): boolean => opcode >= FIRST_CONTROL_OPCODE;

/**
 * One unmasked text frame around a message. A payload prepared by `writeTextHeader` is framed in
 * place; anything else is copied.
 */
export const textFrame = (message: Frame): Buffer =>
  (typeof message === "string" ? null : inPlace(message)) ?? ownFrame(FIN_TEXT, message);

/** A close frame (section 5.5.1): a code and a reason or, for null, an empty one. */
export const closeFrame = (code: number | null, reason: string | Uint8Array): Buffer => {
  if (code === null) return ownFrame(FIN_CLOSE, "");
  const text = typeof reason === "string" ? Buffer.from(reason) : reason;
  const payload = Buffer.alloc(2 + Math.min(text.length, MAX_CONTROL_PAYLOAD - 2));
  payload.writeUInt16BE(code);
  payload.set(text.subarray(0, payload.length - 2), 2);
  return ownFrame(FIN_CLOSE, payload);
};

export const pongFrame = (payload: Uint8Array): Buffer => ownFrame(FIN_PONG, payload);

const ownFrame = (first: number, payload: Frame): Buffer => {
  const length = typeof payload === "string" ? Buffer.byteLength(payload) : payload.length;
  const header = lengthBytes(length) + 2;
  const frame = Buffer.allocUnsafe(header + length);
  frame[0] = first;
  writeLength(frame, 0, 0, length);
  if (typeof payload === "string") {
    frame.write(payload, header);
  } else {
    frame.set(payload, header);
  }
  return frame;
};

/**
 * Writes the header of an unmasked text frame in front of a payload of `length` bytes at `at`. The
 * header of the masked frame that contained the payload is at least 4 bytes longer, so there is
 * room.
 */
export const writeTextHeader = (bytes: Buffer, at: number, length: number): void => {
  const from = at - lengthBytes(length) - 2;
  bytes[from] = FIN_TEXT;
  writeLength(bytes, from, 0, length);
};

/**
 * The frame around a payload with its header before it in memory; null if there is none. This is
 * read instead of remembered: if these bytes are present, they are correct.
 */
export const inPlace = (payload: Uint8Array): Buffer | null => {
  const { buffer, byteOffset, length } = payload;
  const header = lengthBytes(length) + 2;
  if (byteOffset < header) return null;
  const frame = Buffer.from(buffer, byteOffset - header, header + length);
  const there = frame[0] === FIN_TEXT && frame[1] === shortLength(length);
  if (!there || (header > 2 && readLength(frame, 0) !== length)) return null;
  return frame;
};

/** Reads a frame's header at `at`; null if it is incomplete. */
export const readFrameHead = (bytes: Buffer, at: number): FrameHead | null => {
  const there = bytes.length - at;
  if (there < 2) {
    return null;
  }
  const first = bytes[at] as number;
  const second = bytes[at + 1] as number;
  const headerLength = headerLengthOf(second);
  if (there < headerLength) {
    return null;
  }
  const payloadLength = readLength(bytes, at);
  return { headerLength, payloadLength, fin: (first & 0x80) !== 0, opcode: first & 0x0f };
};

/** Bytes of a header by its second byte, the mask included. */
export const headerLengthOf = (second: number): number => {
  const short = second & 0x7f;
  const extended = short === LENGTH_16 ? 2 : short === LENGTH_64 ? 8 : 0;
  return 2 + extended + ((second & MASKED) === 0 ? 0 : MASK_BYTES);
};

/** The payload's length from the header at `at`, which is complete. */
export const readLength = (bytes: Buffer, at: number): number => {
  const short = (bytes[at + 1] as number) & 0x7f;
  if (short < LENGTH_16) return short;
  return short === LENGTH_16
    ? bytes.readUInt16BE(at + 2)
    : bytes.readUInt32BE(at + 2) * 2 ** 32 + bytes.readUInt32BE(at + 6);
};

/** The header at `at` as it would be for a payload of another length; flags and mask stay. */
export const withLength = (bytes: Buffer, at: number, head: FrameHead, length: number): Buffer => {
  const second = bytes[at + 1] as number;
  const maskBytes = (second & MASKED) === 0 ? 0 : MASK_BYTES;
  const header = Buffer.alloc(2 + lengthBytes(length) + maskBytes);
  header[0] = bytes[at] as number;
  writeLength(header, 0, second & MASKED, length);
  bytes.copy(
    header,
    header.length - maskBytes,
    at + head.headerLength - maskBytes,
    at + head.headerLength,
  );
  return header;
};

const lengthBytes = (length: number): number => (length < LENGTH_16 ? 0 : length < 2 ** 16 ? 2 : 8);

const shortLength = (length: number): number =>
  length < LENGTH_16 ? length : length < 2 ** 16 ? LENGTH_16 : LENGTH_64;

/** Writes the length into the header at `at`. */
const writeLength = (bytes: Buffer, at: number, maskBit: number, length: number): void => {
  bytes[at + 1] = maskBit | shortLength(length);
  if (length >= 2 ** 16) {
    bytes.writeUInt32BE(Math.floor(length / 2 ** 32), at + 2);
    bytes.writeUInt32BE(length % 2 ** 32, at + 6);
  } else if (length >= LENGTH_16) {
    bytes.writeUInt16BE(length, at + 2);
  }
};
