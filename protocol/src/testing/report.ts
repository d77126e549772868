/**
 * How the conformance checks report failures: as sentences, so that a board can print them.
 *
 * [portable]
 */
import { fromHex } from "../encoding/bytes.ts";

/** Adds a sentence unless both are the same. */
export const expectSame = (
  failures: string[],
  where: string,
  got: unknown,
  want: unknown,
): void => {
  if (got !== want) failures.push(`${where}: got ${got}, expected ${want}`);
};

/** Bytes from the hex in a vector file, which is known to be valid. */
export const hex = (text: string): Uint8Array => {
  const bytes = fromHex(text);
  if (bytes === null) throw new Error(`not hex: ${text}`);
  return bytes;
};

/** Whether a function throws. */
export const throws = (run: () => void): boolean => {
  try {
    run();
    return false;
  } catch {
    return true;
  }
};
