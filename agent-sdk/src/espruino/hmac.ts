/**
 * HMAC (RFC 2104) over a board's SHA-256.
 *
 * [portable]
 */

const HASH_BLOCK = 64;
const INNER_PAD = 0x36363636;
const OUTER_PAD = 0x5c5c5c5c;

/** Anything that computes SHA-256: over whole bytes, 32 bytes. */
export interface Hasher {
  hash(data: Uint8Array): Uint8Array;
}

/** RFC 2104: a key longer than a block is hashed first, then padded with zeros. */
export const hmacKeyWords = (hasher: Hasher, key: Uint8Array): Int32Array => {
  const short = key.length > HASH_BLOCK ? hasher.hash(key) : key;
  const words = new Int32Array((short.length + 3) >> 2);
  new Uint8Array(words.buffer).set(short, 0);
  return words;
};

/** One of the two hashes: over the key XOR a pad, word by word, followed by the data. */
const hashPadded = (hasher: Hasher, key: Int32Array, pad: number, data: Uint8Array): Uint8Array => {
  const words = new Int32Array((HASH_BLOCK + data.length + 3) >> 2);
  words.fill(pad, 0, HASH_BLOCK / 4);
  for (let i = 0; i < key.length; i++) words[i] = (key[i] as number) ^ pad;
  const all = new Uint8Array(words.buffer);
  all.set(data, HASH_BLOCK);
  return hasher.hash(all.subarray(0, HASH_BLOCK + data.length));
};

/** HMAC-SHA256, 32 bytes. */
export const hmacSha256 = (hasher: Hasher, key: Int32Array, data: Uint8Array): Uint8Array =>
  hashPadded(hasher, key, OUTER_PAD, hashPadded(hasher, key, INNER_PAD, data));
