/**
 * One AES-128 key on a board, for CCM: Espruino's CTR mode ignores the IV and its `ccmEncrypt`
 * takes no AAD, so CCM is composed from CBC and ECB.
 *
 * [portable]
 */
import type { AesBlocks } from "@blindrelay/protocol/crypto";
import type { EspruinoCrypto } from "./board.ts";

type Aes = Required<EspruinoCrypto>["AES"];

export class AesKey implements AesBlocks {
  declare aes: Aes;
  declare key: Uint8Array;

  /** `key`: 16 bytes. Throws if there is no native AES. */
  constructor(crypto: EspruinoCrypto, key: Uint8Array) {
    const aes = crypto.AES;
    if (!aes) throw new Error('this Espruino has no AES: use packet version "1"');
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
