/**
 * What a board's suite does whatever its ciphers: hash natively, and HMAC over that.
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
   * `makeRoom`: called before a packet is sealed or opened, and where a hash finds no room. Natives
   * want their results in one stretch of memory, and end the program's turn where there is none; of
   * each such end Espruino keeps 40 variables for good.
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

/** A copy, because what a key is cut from is let go; see Suite.aeadKey. */
export const keyOf = (bytes: Uint8Array, length: number): Uint8Array => {
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(0, length), 0);
  return copy;
};
