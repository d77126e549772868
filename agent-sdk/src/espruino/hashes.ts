/**
 * The part of a board's suite that is common to all ciphers: native hashing, and HMAC based on it.
 *
 * [portable]
 */
import type { HmacKey } from "@blindrelay/protocol/crypto";
import type { EspruinoCrypto } from "./board.ts";
import { hmacKeyWords, hmacSha256 } from "./hmac.ts";

export class NativeHashes {
  declare crypto: EspruinoCrypto;
  declare makeRoom: () => void;

  /**
   * `makeRoom`: called before a packet is sealed or opened, and if a hash finds no room. Native
   * functions need contiguous memory for their results, and end the program's turn if there is
   * none; each time, Espruino permanently loses 40 variables.
   */
  constructor(crypto: EspruinoCrypto, makeRoom: () => void) {
    this.crypto = crypto;
    this.makeRoom = makeRoom;
  }

  hash(data: Uint8Array): Uint8Array {
    const native = this.crypto.SHA256;
    if (!native) throw new Error("this Espruino has no SHA-256");
    let digest = native(data);
    if (digest === undefined) {
      this.makeRoom();
      digest = native(data);
    }
    return new Uint8Array(digest as ArrayBuffer);
  }

  hmacKey(key: Uint8Array): HmacKey {
    return { hmacKey: hmacKeyWords(this, key) };
  }

  hmac(key: HmacKey, data: Uint8Array): Uint8Array {
    return hmacSha256(this, key.hmacKey as Int32Array, data);
  }
}

/** A copy, so that the array it is taken from can be freed; see Suite.aeadKey. */
export const keyOf = (bytes: Uint8Array, length: number): Uint8Array => {
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(0, length), 0);
  return copy;
};
