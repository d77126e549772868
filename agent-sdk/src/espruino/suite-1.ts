/**
 * Only packet version "1", for boards without AES: ChaCha20-Poly1305 in JavaScript.
 *
 * [portable]
 */
import type { AeadKey, Suite, Version } from "@blindrelay/protocol/crypto";
import { chachaOpen, chachaSeal } from "./chacha20poly1305.ts";
import { keyOf, NativeHashes } from "./hashes.ts";

export class EspruinoSuite extends NativeHashes implements Suite {
  aeadKey(v: Version, key: Uint8Array): AeadKey {
    if (v !== "1") throw new Error('this file knows packet version "1": flash the board again');
    return { aeadKey: keyOf(key, 32) };
  }

  seal(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    this.makeRoom();
    return chachaSeal(key.aeadKey as Uint8Array, nonce, aad, plaintext);
  }

  open(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
    this.makeRoom();
    return chachaOpen(key.aeadKey as Uint8Array, nonce, aad, sealed);
  }
}
