/**
 * Only packet version "2", for boards with AES: AES-128-CCM based on it, and native SHA-256.
 *
 * [portable]
 */
import type { AeadKey, Suite, Version } from "@blindrelay/protocol/crypto";
import { ccmOpen, ccmSeal } from "@blindrelay/protocol/crypto";
import { AesKey } from "./aes-key.ts";
import { keyOf, NativeHashes } from "./hashes.ts";

export class EspruinoSuite extends NativeHashes implements Suite {
  aeadKey(v: Version, key: Uint8Array): AeadKey {
    if (v !== "2") throw new Error('this file knows packet version "2": flash the board again');
    return { aeadKey: new AesKey(this.crypto, keyOf(key, 16)) };
  }

  seal(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    this.makeRoom();
    return ccmSeal(key.aeadKey as AesKey, nonce, aad, plaintext);
  }

  open(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
    this.makeRoom();
    return ccmOpen(key.aeadKey as AesKey, nonce, aad, sealed);
  }
}
