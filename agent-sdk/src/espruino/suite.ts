/**
 * The suite for any Espruino, in both packet versions: native SHA-256 and AES if the board's build
 * has them, and our own SHA-256 otherwise. A file for one packet version contains suite-1.ts or
 * suite-2.ts instead, under the same name.
 *
 * [portable]
 */
import type { AeadKey, Suite, Version } from "@blindrelay/protocol/crypto";
import { ccmOpen, ccmSeal } from "@blindrelay/protocol/crypto";
import { AesKey } from "./aes-key.ts";
import { chachaOpen, chachaSeal } from "./chacha20poly1305.ts";
import { keyOf, NativeHashes } from "./hashes.ts";
import { sha256 } from "./sha256.ts";

/** The suite over a board's `crypto` module. */
export class EspruinoSuite extends NativeHashes implements Suite {
  override hash(data: Uint8Array): Uint8Array {
    return this.crypto.SHA256 ? super.hash(data) : sha256(data);
  }

  aeadKey(v: Version, key: Uint8Array): AeadKey {
    if (key.length !== 32) throw new Error("an AEAD key has 32 bytes");
    if (v > "2") throw new Error('a board has packet versions "1" and "2"');
    return { aeadKey: v === "1" ? keyOf(key, 32) : new AesKey(this.crypto, keyOf(key, 16)) };
  }

  seal(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array {
    const handle = key.aeadKey as AesKey | Uint8Array;
    this.makeRoom();
    return handle instanceof AesKey
      ? ccmSeal(handle, nonce, aad, plaintext)
      : chachaSeal(handle, nonce, aad, plaintext);
  }

  open(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null {
    const handle = key.aeadKey as AesKey | Uint8Array;
    this.makeRoom();
    return handle instanceof AesKey
      ? ccmOpen(handle, nonce, aad, sealed)
      : chachaOpen(handle, nonce, aad, sealed);
  }
}
