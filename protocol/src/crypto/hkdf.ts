/**
 * HKDF-SHA256 (RFC 5869) over the suite's HMAC.
 *
 * [portable]
 */
import { asciiBytes } from "../encoding/bytes.ts";
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
  // T(i) = HMAC(PRK, T(i-1) || info || i), where T(0) is empty
  const input = new Uint8Array(HASH_BYTES + info.length + 1);
  input.set(info, HASH_BYTES);
  for (let i = 0; i * HASH_BYTES < length; i++) {
    input[input.length - 1] = i + 1;
    const block = suite.hmac(prk, i === 0 ? input.subarray(HASH_BYTES) : input);
    okm.set(block, i * HASH_BYTES);
    input.set(block, 0);
    block.fill(0);
  }
  input.fill(0);
  return okm.subarray(0, length);
};

/** The same with an ASCII label as info, which every derivation of the contract uses. */
export const hkdfExpandLabel = (
  suite: Suite,
  prk: HmacKey,
  label: string,
  length: number,
): Uint8Array => hkdfExpand(suite, prk, asciiBytes(label), length);
