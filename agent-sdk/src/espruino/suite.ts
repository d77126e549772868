/**
 * The suite on Espruino: native SHA-256 and AES where the board's build has them, our own code
 * where not. Suite "2" (AES-128-CCM) needs native AES; its CTR mode ignores the IV and its
 * `ccmEncrypt` takes no AAD, so CCM is composed from CBC and ECB.
 *
 * [portable]
 */
import type { AeadKey, AesBlocks, HmacKey, Suite, Version } from "@blindrelay/protocol/crypto";
import { ccmOpen, ccmSeal } from "@blindrelay/protocol/crypto";
import type { EspruinoCrypto } from "./board.ts";
import { chachaOpen, chachaSeal } from "./chacha20poly1305.ts";
import { hmacKeyWords, hmacSha256 } from "./hmac.ts";
import { sha256 } from "./sha256.ts";

type Aes = Required<EspruinoCrypto>["AES"];

/** One AES-128 key and the native cipher that takes it. */
class AesKey implements AesBlocks {
  declare aes: Aes;
  declare key: Uint8Array;

  constructor(aes: Aes, key: Uint8Array) {
    this.aes = aes;
    this.key = key;
  }

  cbc(blocks: Uint8Array, iv: Uint8Array): Uint8Array {
    return new Uint8Array(this.aes.encrypt(blocks, this.key, { mode: "CBC", iv: iv }));
  }

  ecb(blocks: Uint8Array): Uint8Array {
    return new Uint8Array(this.aes.encrypt(blocks, this.key, { mode: "ECB" }));
  }
}

const copyOf = (bytes: Uint8Array, length: number): Uint8Array => {
  const copy = new Uint8Array(length);
  copy.set(bytes.subarray(0, length), 0);
  return copy;
};

/**
 * The suite over a board's `crypto` module. A key of version "2" throws where there is no native
 * AES.
 */
export class EspruinoSuite implements Suite {
  declare crypto: EspruinoCrypto;
  declare makeRoom: () => void;

  /**
   * `makeRoom`: called before a packet is sealed or opened. Natives want their results in one
   * stretch of memory, and end the program's turn where there is none.
   */
  constructor(crypto: EspruinoCrypto, makeRoom: () => void) {
    this.crypto = crypto;
    this.makeRoom = makeRoom;
  }

  hash(data: Uint8Array): Uint8Array {
    const crypto = this.crypto;
    return crypto.SHA256 ? new Uint8Array(crypto.SHA256(data)) : sha256(data);
  }

  hmacKey(key: Uint8Array): HmacKey {
    return { hmacKey: hmacKeyWords(this, key) };
  }

  hmac(key: HmacKey, data: Uint8Array): Uint8Array {
    return hmacSha256(this, key.hmacKey as Int32Array, data);
  }

  aeadKey(v: Version, key: Uint8Array): AeadKey {
    if (key.length !== 32) throw new Error("an AEAD key has 32 bytes");
    if (v === "1") return { aeadKey: copyOf(key, 32) };
    const aes = this.crypto.AES;
    if (!aes) throw new Error('this Espruino has no AES: use packet version "1"');
    return { aeadKey: new AesKey(aes, copyOf(key, 16)) };
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
