/**
 * The suite of an embedded engine: @noble's ChaCha20-Poly1305 and SHA-256, and the host's HMAC and
 * AES if it has them. @noble's AES would add tables of 1.3 MB to the heap.
 */
import type { AesBlocks, HmacKey, Suite } from "@blindrelay/protocol/crypto";
import { fromHex, toHex } from "@blindrelay/protocol/crypto";
import { withAes } from "@blindrelay/protocol/suites/aes-blocks";
import { nobleChachaSuite } from "@blindrelay/protocol/suites/noble-chacha";

/** Bytes that a host gives. Throws if `hex` is not `length` bytes; `what`: the host's function. */
export const hostBytes = (hex: string, length: number, what: string): Uint8Array => {
  const bytes = fromHex(hex);
  if (bytes?.length !== length) throw new Error(`the host's ${what} must return ${length} bytes`);
  return bytes;
};

/** AES-128 of whole blocks (ECB); all in hex. */
export type HostAes = (key: string, blocks: string) => string;

/** HMAC-SHA256 of `data`; all in hex. */
export type HostHmac = (key: string, data: string) => string;

const BLOCK_BYTES = 16;
const MAC_BYTES = 32;

const blocksOf = (aes: HostAes, key: Uint8Array): AesBlocks => {
  const keyHex = toHex(key);
  const ecb = (blocks: Uint8Array): Uint8Array =>
    hostBytes(aes(keyHex, toHex(blocks)), blocks.length, "aes");
  return {
    ecb,
    cbc: (blocks, iv) => {
      const out = new Uint8Array(blocks.length);
      let last = iv;
      for (let at = 0; at < blocks.length; at += BLOCK_BYTES) {
        const block = blocks.slice(at, at + BLOCK_BYTES);
        for (let i = 0; i < BLOCK_BYTES; i++) block[i] = (block[i] as number) ^ (last[i] as number);
        last = ecb(block);
        out.set(last, at);
      }
      return out;
    },
  };
};

const withHmac = (suite: Suite, hmac: HostHmac): Suite => ({
  ...suite,
  hmacKey: (key) => ({ hmacKey: toHex(key) }),
  hmac: (key: HmacKey, data) =>
    hostBytes(hmac(key.hmacKey as string, toHex(data)), MAC_BYTES, "hmac"),
});

/** Packet version "2" throws if the host has no AES. */
export const embeddedSuite = ({ aes, hmac }: { aes?: HostAes; hmac?: HostHmac }): Suite => {
  const chacha = nobleChachaSuite();
  const suite = hmac === undefined ? chacha : withHmac(chacha, hmac);
  return aes === undefined ? suite : withAes(suite, (key) => blocksOf(aes, key));
};
