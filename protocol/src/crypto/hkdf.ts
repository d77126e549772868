/**
 * HKDF-SHA256 (RFC 5869) over the suite's HMAC.
 *
 * [portable]
 */
import { asciiBytes, concatBytes } from "../encoding/bytes.ts";
import type { HmacKey, Suite } from "./suite.ts";

const HASH_BYTES = 32;

/** RFC 5869 section 2.2: PRK = HMAC(salt, IKM), 32 bytes. */
export const hkdfExtract = (suite: Suite, salt: Uint8Array, ikm: Uint8Array): Uint8Array =>
  suite.hmac(suite.hmacKey(salt), ikm);

/**
 * RFC 5869 section 2.3. `length`: 1 to 8,160 bytes; more is our own mistake and throws.
 */
export const hkdfExpand = (
  suite: Suite,
  prk: HmacKey,
  info: Uint8Array,
  length: number,
): Uint8Array => {
  if (!(length > 0) || length > 255 * HASH_BYTES) throw new Error("HKDF: length 1 to 8160");
  const okm = new Uint8Array(Math.ceil(length / HASH_BYTES) * HASH_BYTES);
  let previous = new Uint8Array(0);
  for (let i = 0; i * HASH_BYTES < length; i++) {
    const counter = new Uint8Array(1);
    counter[0] = i + 1;
    // T(i) = HMAC(PRK, T(i-1) || info || i)
    previous = suite.hmac(
      prk,
      concatBytes(concatBytes(previous, info), counter),
    ) as Uint8Array<ArrayBuffer>;
    okm.set(previous, i * HASH_BYTES);
  }
  return okm.subarray(0, length);
};

/** The same with an ASCII label for info, as every derivation of the contract has it. */
export const hkdfExpandLabel = (
  suite: Suite,
  prk: HmacKey,
  label: string,
  length: number,
): Uint8Array => hkdfExpand(suite, prk, asciiBytes(label), length);
