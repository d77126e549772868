/** Bytes that a host gives, in hex. */
import { fromHex } from "@blindrelay/protocol/crypto";

/** Throws if `hex` is not `length` bytes; `what`: the host's function. */
export const hostBytes = (hex: string, length: number, what: string): Uint8Array => {
  const bytes = fromHex(hex);
  if (bytes?.length !== length) throw new Error(`the host's ${what} must return ${length} bytes`);
  return bytes;
};
