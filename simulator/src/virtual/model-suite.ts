/**
 * Cryptography that costs next to nothing, for searches: keyed mixing in place of HMAC, AES,
 * ChaCha20 and X25519. Sizes are those of the real ones, a changed packet or a wrong key is
 * refused, and nothing that is sealed is readable, so a run takes the same course as with real
 * cryptography. It protects nothing.
 */
import type { AeadKey, HmacKey, Suite, X25519 } from "@blindrelay/protocol/crypto";

const HMAC_BYTES = 32;
const TAG_BYTES = 16;

/** The state of the mixing: 64 bits, enough that no two inputs of a run meet. */
let h1 = 0;
let h2 = 0;

interface Mixed {
  readonly h1: number;
  readonly h2: number;
}

const begin = (from: Mixed): void => {
  h1 = from.h1;
  h2 = from.h2;
};

const absorb = (bytes: Uint8Array): void => {
  const { length } = bytes;
  for (let i = 0; i < length; i++) {
    const byte = bytes[i] as number;
    h1 = Math.imul(h1 ^ byte, 0x01000193);
    h2 = Math.imul(h2 ^ byte, 0x5bd1e995) ^ (h2 >>> 15);
  }
  h1 = Math.imul(h1 ^ length, 0x85ebca6b) ^ (h1 >>> 13);
  h2 = Math.imul(h2 ^ h1, 0xc2b2ae35) ^ (h2 >>> 16);
};

/** The word of this number that follows from the state. */
const word = (number: number): number => {
  let h = Math.imul(h1 ^ (number + 0x9e3779b9), 0x85ebca6b) ^ h2;
  h = Math.imul(h ^ (h >>> 15), 0xc2b2ae35);
  return h ^ (h >>> 13);
};

/** Writes `length` bytes, a multiple of four. */
const squeeze = (into: Uint8Array, at: number, length: number): void => {
  for (let i = 0; i < length; i += 4) {
    const w = word(i);
    into[at + i] = w;
    into[at + i + 1] = w >>> 8;
    into[at + i + 2] = w >>> 16;
    into[at + i + 3] = w >>> 24;
  }
};

/** Encrypts and decrypts: the same words are applied twice. */
const cover = (into: Uint8Array, from: Uint8Array, length: number): void => {
  let w = 0;
  for (let i = 0; i < length; i++) {
    if ((i & 3) === 0) w = word(i + 1000);
    into[i] = (from[i] as number) ^ (w & 255);
    w >>>= 8;
  }
};

const START: Mixed = { h1: 0x9e3779b9, h2: 0x85ebca6b };

const keyed = (key: Uint8Array): Mixed => {
  begin(START);
  absorb(key);
  return { h1, h2 };
};

/** Stateless; may be shared. */
export const modelSuite = (): Suite => ({
  hmacKey: (key) => ({ hmacKey: keyed(key) }),
  hmac: (key: HmacKey, data) => {
    begin(key.hmacKey as Mixed);
    absorb(data);
    const out = new Uint8Array(HMAC_BYTES);
    squeeze(out, 0, HMAC_BYTES);
    return out;
  },
  aeadKey: (v, key) => {
    if (key.length !== 32) throw new RangeError("an AEAD key is derived as 32 bytes");
    return { aeadKey: keyed(v === "1" ? key : key.subarray(0, 16)) };
  },
  seal: (key: AeadKey, nonce, aad, plaintext) => {
    const { length } = plaintext;
    const sealed = new Uint8Array(length + TAG_BYTES);
    begin(key.aeadKey as Mixed);
    absorb(nonce);
    cover(sealed, plaintext, length);
    absorb(aad);
    absorb(plaintext);
    squeeze(sealed, length, TAG_BYTES);
    return sealed;
  },
  open: (key: AeadKey, nonce, aad, sealed) => {
    const length = sealed.length - TAG_BYTES;
    if (length < 0) return null;
    const plaintext = new Uint8Array(length);
    begin(key.aeadKey as Mixed);
    absorb(nonce);
    cover(plaintext, sealed, length);
    absorb(aad);
    absorb(plaintext);
    const tag = new Uint8Array(TAG_BYTES);
    squeeze(tag, 0, TAG_BYTES);
    for (let i = 0; i < TAG_BYTES; i++) if (tag[i] !== sealed[length + i]) return null;
    return plaintext;
  },
});

const KEY_BYTES = 32;

/** A private value is its own public one, and both sides mix the two in the same way. */
export const modelX25519: X25519 = {
  // As Node's, on which it depends how often clients exchange keys.
  isNative: true,
  pair: (privateKey) => {
    const own = Uint8Array.from(privateKey);
    return {
      publicKey: () => Uint8Array.from(own),
      shared: (publicKey) => {
        begin(START);
        absorb(own.map((byte, i) => byte ^ (publicKey[i] as number)));
        const shared = new Uint8Array(KEY_BYTES);
        squeeze(shared, 0, KEY_BYTES);
        return shared;
      },
      end: () => own.fill(0),
    };
  },
};
