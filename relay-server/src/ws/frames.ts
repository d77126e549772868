/**
 * RFC 6455 frames as far as the relay touches them itself (section 5.2): the header it writes
 * before each text message, and the header it reads to know how long a frame is. Everything else
 * about frames is ws's.
 */
import type { Frame } from "../core/link.ts";

const FIN_TEXT = 0x81;
const MASKED = 0x80;
const LENGTH_16 = 126;
const LENGTH_64 = 127;
const MASK_BYTES = 4;
const FIRST_CONTROL_OPCODE = 0x08;
export const OP_CLOSE = 0x08;
/** Section 5.5. */
export const MAX_CONTROL_PAYLOAD = 125;

/** A frame's length as it stands in its header. */
export interface FrameHead {
  /** Bytes of the header, the mask included. */
  headerLength: number;
  payloadLength: number;
  fin: boolean;
  opcode: number;
}

export const isControl = (opcode: number): boolean => opcode >= FIRST_CONTROL_OPCODE;

/** One unmasked text frame around a message; the bytes are copied. */
export const textFrame = (message: Frame): Buffer => {
  const length = typeof message === "string" ? Buffer.byteLength(message) : message.length;
  const header = lengthBytes(length) + 2;
  const frame = Buffer.allocUnsafe(header + length);
  frame[0] = FIN_TEXT;
  writeLength(frame, 0, length);
  if (typeof message === "string") {
    frame.write(message, header);
  } else {
    frame.set(message, header);
  }
  return frame;
};

/** Reads a frame's header at `at`; null when not all of it is there yet. */
export const readFrameHead = (bytes: Buffer, at: number): FrameHead | null => {
  const there = bytes.length - at;
  if (there < 2) {
    return null;
  }
  const first = bytes[at] as number;
  const second = bytes[at + 1] as number;
  const short = second & 0x7f;
  const extended = short === LENGTH_16 ? 2 : short === LENGTH_64 ? 8 : 0;
  const headerLength = 2 + extended + ((second & MASKED) === 0 ? 0 : MASK_BYTES);
  if (there < headerLength) {
    return null;
  }
  const payloadLength =
    extended === 0
      ? short
      : extended === 2
        ? bytes.readUInt16BE(at + 2)
        : bytes.readUInt32BE(at + 2) * 2 ** 32 + bytes.readUInt32BE(at + 6);
  return { headerLength, payloadLength, fin: (first & 0x80) !== 0, opcode: first & 0x0f };
};

/** The header at `at` as it would be for a payload of another length; flags and mask stay. */
export const withLength = (bytes: Buffer, at: number, head: FrameHead, length: number): Buffer => {
  const second = bytes[at + 1] as number;
  const maskBytes = (second & MASKED) === 0 ? 0 : MASK_BYTES;
  const header = Buffer.alloc(2 + lengthBytes(length) + maskBytes);
  header[0] = bytes[at] as number;
  writeLength(header, second & MASKED, length);
  bytes.copy(
    header,
    header.length - maskBytes,
    at + head.headerLength - maskBytes,
    at + head.headerLength,
  );
  return header;
};

const lengthBytes = (length: number): number => (length < LENGTH_16 ? 0 : length < 2 ** 16 ? 2 : 8);

const writeLength = (header: Buffer, maskBit: number, length: number): void => {
  if (length < LENGTH_16) {
    header[1] = maskBit | length;
  } else if (length < 2 ** 16) {
    header[1] = maskBit | LENGTH_16;
    header.writeUInt16BE(length, 2);
  } else {
    header[1] = maskBit | LENGTH_64;
    header.writeUInt32BE(Math.floor(length / 2 ** 32), 2);
    header.writeUInt32BE(length % 2 ** 32, 6);
  }
};
