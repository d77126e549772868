/**
 * AES-128-CCM (RFC 3610; M = 16, L = 3 because the nonce has 12 bytes) composed from AES in CBC and
 * ECB mode, for runtimes that have those but no CCM with AAD: native in Espruino, noble in
 * browsers.
 *
 * [portable]
 */
import { equalBytes } from "../encoding/bytes.ts";
import { TAG_BYTES } from "../spec.ts";

/** AES-128 under one key. Both take and return whole blocks of 16 bytes, without padding. */
export interface AesBlocks {
  /** `iv`: 16 bytes. */
  cbc(blocks: Uint8Array, iv: Uint8Array): Uint8Array;
  ecb(blocks: Uint8Array): Uint8Array;
}

const AES_BLOCK = 16;
const MAC_FLAGS = 0x3a; // (M - 2) / 2 << 3 | L - 1
const ADATA = 0x40;
const COUNTER_FLAGS = 0x02; // L - 1
/** Texts are processed in pieces, because a board's cipher needs contiguous memory. */
const PIECE = 64;

const blocksFor = (length: number): number => Math.ceil(length / AES_BLOCK) * AES_BLOCK;

/** The last block of a chain, in separate memory so that the rest can be freed. */
const lastBlock = (chained: Uint8Array): Uint8Array => {
  const block = new Uint8Array(AES_BLOCK);
  block.set(chained.subarray(chained.length - AES_BLOCK), 0);
  return block;
};

/** RFC 3610 section 2.2: the CBC-MAC over B_0, the AAD with its length, and the message. */
const mac = (
  aes: AesBlocks,
  nonce: Uint8Array,
  aad: Uint8Array,
  message: Uint8Array,
): Uint8Array => {
  const length = message.length;
  const hasAad = aad.length > 0;
  const head = new Uint8Array(AES_BLOCK + (hasAad ? blocksFor(2 + aad.length) : 0));
  head[0] = hasAad ? MAC_FLAGS | ADATA : MAC_FLAGS;
  head.set(nonce, 1);
  head[13] = (length >> 16) & 255;
  head[14] = (length >> 8) & 255;
  head[15] = length & 255;
  if (hasAad) {
    head[16] = (aad.length >> 8) & 255;
    head[17] = aad.length & 255;
    head.set(aad, 18);
  }
  let tag = lastBlock(aes.cbc(head, new Uint8Array(AES_BLOCK)));
  for (let at = 0; at < length; at += PIECE) {
    const piece = message.subarray(at, Math.min(length, at + PIECE));
    const blocks = new Uint8Array(blocksFor(piece.length));
    blocks.set(piece, 0);
    tag = lastBlock(aes.cbc(blocks, tag));
  }
  return tag;
};

/** RFC 3610 section 2.3: `bytes` of key stream, in whole blocks, starting with block S_`from`. */
const keyStream = (aes: AesBlocks, nonce: Uint8Array, from: number, bytes: number): Uint8Array => {
  const counters = new Uint8Array(bytes);
  for (let at = 0; at < bytes; at += AES_BLOCK) {
    const counter = from + at / AES_BLOCK;
    counters[at] = COUNTER_FLAGS;
    counters.set(nonce, at + 1);
    counters[at + 13] = (counter >> 16) & 255;
    counters[at + 14] = (counter >> 8) & 255;
    counters[at + 15] = counter & 255;
  }
  return aes.ecb(counters);
};

/**
 * XORs `bytes` (at most PIECE) with the key stream; in words, because each turn of a loop costs
 * time.
 */
const applyStream = (bytes: Uint8Array, stream: Uint8Array): Uint8Array => {
  // Separate arrays, because words must be aligned.
  const words = new Int32Array(stream.length >> 2);
  const result = new Uint8Array(words.buffer);
  result.set(bytes, 0);
  const mask = new Int32Array(words.length);
  new Uint8Array(mask.buffer).set(stream, 0);
  for (let i = 0; i < words.length; i++) words[i] = (words[i] as number) ^ (mask[i] as number);
  return result.subarray(0, bytes.length);
};

/** Writes the text XOR S_1, S_2, ... to `output`. */
const encrypt = (aes: AesBlocks, nonce: Uint8Array, text: Uint8Array, output: Uint8Array): void => {
  for (let at = 0; at < text.length; at += PIECE) {
    const piece = text.subarray(at, Math.min(text.length, at + PIECE));
    const stream = keyStream(aes, nonce, 1 + at / AES_BLOCK, blocksFor(piece.length));
    output.set(applyStream(piece, stream), at);
  }
};

const encryptTag = (aes: AesBlocks, nonce: Uint8Array, tag: Uint8Array): Uint8Array =>
  applyStream(tag, keyStream(aes, nonce, 0, AES_BLOCK));

/** `nonce`: 12 bytes, `aad`: up to 65,279 bytes. Returns ciphertext || 16-byte tag. */
export const ccmSeal = (
  aes: AesBlocks,
  nonce: Uint8Array,
  aad: Uint8Array,
  plaintext: Uint8Array,
): Uint8Array => {
  const sealed = new Uint8Array(plaintext.length + TAG_BYTES);
  encrypt(aes, nonce, plaintext, sealed);
  sealed.set(encryptTag(aes, nonce, mac(aes, nonce, aad, plaintext)), plaintext.length);
  return sealed;
};

/**
 * The plaintext, or null if the tag does not verify. Overwrites `sealed`, because a board has
 * little memory.
 */
export const ccmOpen = (
  aes: AesBlocks,
  nonce: Uint8Array,
  aad: Uint8Array,
  sealed: Uint8Array,
): Uint8Array | null => {
  const length = sealed.length - TAG_BYTES;
  if (length < 0) return null;
  const plaintext = sealed.subarray(0, length);
  encrypt(aes, nonce, plaintext, plaintext);
  const tag = encryptTag(aes, nonce, mac(aes, nonce, aad, plaintext));
  return equalBytes(tag, sealed.subarray(length)) ? plaintext : null;
};
