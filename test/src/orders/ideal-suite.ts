/**
 * Ideal cryptography behind the suite's port: every value is a name for the term that it was made
 * from, so different terms never have the same bytes, nobody makes a tag without the key, and the
 * same history always gives the same bytes. Cheap, because the search derives keys a million times.
 */
import type { AeadKey, HmacKey, Suite } from "@blindrelay/protocol/crypto";

/** Told of every seal: where (key and nonce), and what (AAD and plaintext). */
export type Witness = (place: string, content: string) => void;

const TAG_BYTES = 16;

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString("latin1");

/** As many bytes of an `A` as its digest has characters for, and a bit more. */
const DIGEST_BYTES = 8;

/** A bijection on 32 bits, so that numbers that follow each other do not look alike. */
const scramble = (n: number): number => {
  let x = Math.imul(n ^ (n >>> 16), 0x85ebca6b);
  x = Math.imul(x ^ (x >>> 13), 0xc2b2ae35);
  return (x ^ (x >>> 16)) >>> 0;
};

export class IdealSuite implements Suite {
  private readonly names = new Map<string, number>();
  private readonly collide: boolean;
  witness: Witness = () => {};

  /** `collide`: the digests that an agent keeps of spent `A`s are all alike. */
  constructor(collide: boolean) {
    this.collide = collide;
  }

  hmacKey(key: Uint8Array): HmacKey {
    return { hmacKey: textOf(key) };
  }

  hmac(key: HmacKey, data: Uint8Array): Uint8Array {
    const { hmacKey } = key as { hmacKey: string };
    const bytes = this.bytes(`hmac ${hmacKey.length} ${hmacKey}${textOf(data)}`, 32);
    return this.collide ? bytes.fill(0, 0, DIGEST_BYTES) : bytes;
  }

  aeadKey(_v: string, key: Uint8Array): AeadKey {
    return { aeadKey: textOf(key) };
  }

  seal(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    const place = `${key.aeadKey}${textOf(nonce)}`;
    const content = `${aad.length} ${textOf(aad)}${textOf(plaintext)}`;
    this.witness(place, content);
    const sealed = new Uint8Array(plaintext.length + TAG_BYTES);
    sealed.set(plaintext);
    sealed.set(this.bytes(place + content, TAG_BYTES), plaintext.length);
    return sealed;
  }

  open(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
    const end = sealed.length - TAG_BYTES;
    if (end < 0) return null;
    const plaintext = sealed.slice(0, end);
    const place = `${key.aeadKey}${textOf(nonce)}`;
    const name = this.names.get(`${place}${aad.length} ${textOf(aad)}${textOf(plaintext)}`);
    if (name === undefined) return null;
    return textOf(this.fill(name, TAG_BYTES)) === textOf(sealed.subarray(end)) ? plaintext : null;
  }

  private bytes(term: string, length: number): Uint8Array {
    let name = this.names.get(term);
    if (name === undefined) {
      name = this.names.size;
      this.names.set(term, name);
    }
    return this.fill(name, length);
  }

  /** The name again and again: a part of 4 bytes, wherever the derivation cuts, is all of it. */
  private fill(name: number, length: number): Uint8Array {
    const word = scramble(name + 1);
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = word >>> (8 * (3 - (i & 3)));
    return bytes;
  }
}
