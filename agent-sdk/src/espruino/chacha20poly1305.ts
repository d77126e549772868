/**
 * ChaCha20-Poly1305 (RFC 8439) for an interpreter: 32-bit integer operations only, one scratch
 * buffer for all calls, no products over 2^53 (Poly1305 in limbs of 13 bits).
 *
 * [portable]
 */
import { TAG_BYTES } from "@blindrelay/protocol";
import { equalBytes } from "@blindrelay/protocol/crypto";

/** "expand 32-byte k", section 2.3. */
const SIGMA = new Int32Array([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);

const state = new Int32Array(16);
const x = new Int32Array(16);

/** Section 2.1, on words a, b, c, d of the working state. */
const quarterRound = (a: number, b: number, c: number, d: number): void => {
  let xa = x[a] as number;
  let xb = x[b] as number;
  let xc = x[c] as number;
  let xd = x[d] as number;
  let t = 0;
  xa = (xa + xb) | 0;
  t = xd ^ xa;
  xd = (t << 16) | (t >>> 16);
  xc = (xc + xd) | 0;
  t = xb ^ xc;
  xb = (t << 12) | (t >>> 20);
  xa = (xa + xb) | 0;
  t = xd ^ xa;
  x[d] = xd = (t << 8) | (t >>> 24);
  x[c] = xc = (xc + xd) | 0;
  t = xb ^ xc;
  x[a] = xa;
  x[b] = (t << 7) | (t >>> 25);
};

/** Section 2.3: one block of key stream into x, from state. */
const block = (): void => {
  x.set(state, 0);
  for (let round = 0; round < 10; round++) {
    quarterRound(0, 4, 8, 12);
    quarterRound(1, 5, 9, 13);
    quarterRound(2, 6, 10, 14);
    quarterRound(3, 7, 11, 15);
    quarterRound(0, 5, 10, 15);
    quarterRound(1, 6, 11, 12);
    quarterRound(2, 7, 8, 13);
    quarterRound(3, 4, 9, 14);
  }
  for (let i = 0; i < 16; i++) x[i] = ((x[i] as number) + (state[i] as number)) | 0;
};

const word = (bytes: Uint8Array, at: number): number =>
  (bytes[at] as number) |
  ((bytes[at + 1] as number) << 8) |
  ((bytes[at + 2] as number) << 16) |
  ((bytes[at + 3] as number) << 24);

const prepare = (key: Uint8Array, nonce: Uint8Array): void => {
  state.set(SIGMA, 0);
  for (let i = 0; i < 8; i++) state[4 + i] = word(key, i * 4);
  state[12] = 0;
  for (let i = 0; i < 3; i++) state[13 + i] = word(nonce, i * 4);
};

/** Section 2.6: the one-time key is the first half of block 0. */
const oneTimeKey = (): Uint8Array => {
  block();
  const key = new Uint8Array(32);
  for (let i = 0; i < 32; i++) key[i] = (x[i >> 2] as number) >>> ((i & 3) * 8);
  return key;
};

/** Section 2.4, starting with block 1: `input` XOR key stream into `output`. */
const chachaEncrypt = (input: Uint8Array, output: Uint8Array, length: number): void => {
  for (let at = 0; at < length; at += 64) {
    state[12] = (state[12] as number) + 1;
    block();
    const end = Math.min(64, length - at);
    for (let i = 0; i < end; i++)
      output[at + i] = (input[at + i] as number) ^ ((x[i >> 2] as number) >>> ((i & 3) * 8));
  }
};

/** 16 bytes (with the bit above them) as ten limbs of 13 bits, added to h. */
const addBlock = (h: Float64Array, bytes: Uint8Array, at: number): void => {
  let bits = 0;
  let held = 0;
  let limb = 0;
  for (let i = 0; i < 17; i++) {
    held |= (i < 16 ? (bytes[at + i] as number) : 1) << bits;
    bits += 8;
    if (bits >= 13) {
      h[limb] = (h[limb] as number) + (held & 8191);
      limb++;
      held = held >>> 13;
      bits -= 13;
    }
  }
  h[limb] = (h[limb] as number) + held;
};

/** h = h * r mod 2^130 - 5, with limbs slightly above 2^13. */
const multiply = (h: Float64Array, r: Float64Array): void => {
  const product = new Float64Array(10);
  for (let i = 0; i < 10; i++) {
    let sum = 0;
    for (let j = 0; j < 10; j++) {
      const k = i - j;
      sum += (h[j] as number) * (k < 0 ? 5 * (r[k + 10] as number) : (r[k] as number));
    }
    product[i] = sum;
  }
  let carry = 0;
  for (let i = 0; i < 10; i++) {
    const limb = (product[i] as number) + carry;
    carry = Math.floor(limb / 8192);
    h[i] = limb - carry * 8192;
  }
  h[0] = (h[0] as number) + carry * 5;
  carry = Math.floor((h[0] as number) / 8192);
  h[0] = (h[0] as number) - carry * 8192;
  h[1] = (h[1] as number) + carry;
};

/** Section 2.5.1 and 2.8: the tag over aad, ciphertext (each padded to 16) and their lengths. */
const makeTag = (
  key: Uint8Array,
  aad: Uint8Array,
  ciphertext: Uint8Array,
  length: number,
): Uint8Array => {
  const aadEnd = (aad.length + 15) & ~15;
  const textEnd = aadEnd + ((length + 15) & ~15);
  const data = new Uint8Array(textEnd + 16);
  data.set(aad, 0);
  data.set(ciphertext.subarray(0, length), aadEnd);
  const lengths = new DataView(data.buffer);
  lengths.setUint32(textEnd, aad.length, true);
  lengths.setUint32(textEnd + 8, length, true);

  const clamped = new Uint8Array(17);
  clamped.set(key.subarray(0, 16), 0);
  for (let i = 3; i < 16; i += 4) clamped[i] = (clamped[i] as number) & 15;
  for (let i = 4; i < 16; i += 4) clamped[i] = (clamped[i] as number) & 252;
  const r = new Float64Array(10);
  addBlock(r, clamped, 0);
  r[9] = (r[9] as number) - 2048; // addBlock's bit above the 16 bytes (2^128 is limb 9, bit 11)

  const h = new Float64Array(10);
  for (let at = 0; at < data.length; at += 16) {
    addBlock(h, data, at);
    multiply(h, r);
  }
  let carry = 0;
  for (let round = 0; round < 2; round++) {
    for (let i = 0; i < 10; i++) {
      const limb = (h[i] as number) + carry;
      carry = Math.floor(limb / 8192);
      h[i] = limb - carry * 8192;
    }
    carry *= 5;
  }
  h[0] = (h[0] as number) + carry;
  // h - p if h >= p: add 5, and see whether it reaches 2^130.
  const g = new Float64Array(10);
  carry = 5;
  for (let i = 0; i < 10; i++) {
    const limb = (h[i] as number) + carry;
    carry = Math.floor(limb / 8192);
    g[i] = limb - carry * 8192;
  }
  const reduced = carry > 0 ? g : h;
  const tag = new Uint8Array(TAG_BYTES);
  let held = 0;
  let bits = 0;
  let limb = 0;
  carry = 0;
  for (let i = 0; i < TAG_BYTES; i++) {
    if (bits < 8) {
      held += (reduced[limb] as number) << bits;
      bits += 13;
      limb++;
    }
    const sum = (held & 255) + (key[16 + i] as number) + carry;
    tag[i] = sum & 255;
    carry = sum >> 8;
    held = held >> 8;
    bits -= 8;
  }
  return tag;
};

/** `key`: 32 bytes, `nonce`: 12 bytes. Returns ciphertext || 16-byte tag. */
export const chachaSeal = (
  key: Uint8Array,
  nonce: Uint8Array,
  aad: Uint8Array,
  plaintext: Uint8Array,
): Uint8Array => {
  prepare(key, nonce);
  const tagKey = oneTimeKey();
  const sealed = new Uint8Array(plaintext.length + TAG_BYTES);
  chachaEncrypt(plaintext, sealed, plaintext.length);
  sealed.set(makeTag(tagKey, aad, sealed, plaintext.length), plaintext.length);
  return sealed;
};

/**
 * The plaintext, or null if the tag does not verify; it is checked before anything is decrypted.
 */
export const chachaOpen = (
  key: Uint8Array,
  nonce: Uint8Array,
  aad: Uint8Array,
  sealed: Uint8Array,
): Uint8Array | null => {
  const length = sealed.length - TAG_BYTES;
  if (length < 0) return null;
  prepare(key, nonce);
  const tag = makeTag(oneTimeKey(), aad, sealed, length);
  if (!equalBytes(tag, sealed.subarray(length))) return null;
  const plaintext = new Uint8Array(length);
  chachaEncrypt(sealed, plaintext, length);
  return plaintext;
};
