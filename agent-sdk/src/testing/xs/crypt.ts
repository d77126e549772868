/**
 * Runs in XS, in place of the SDK's `crypt` and `hmac`: the native code here is Node's, over the
 * bridge.
 */
import type { ModdableCrypt } from "../../moddable/sdk.ts";
import { ask, fromBase64, toBase64 } from "./bridge.ts";

class Digest {
  readonly type: string;
  constructor(type: "SHA256") {
    this.type = type;
  }
}

class HMAC {
  private readonly key: string;
  constructor(_digest: object, key: Uint8Array) {
    this.key = toBase64(key);
  }
  process(data: Uint8Array): ArrayBuffer {
    const mac = ask({ op: "hmac", key: this.key, data: toBase64(data) }) as string;
    return fromBase64(mac).buffer as ArrayBuffer;
  }
}

class BlockCipher {
  readonly key: string;
  constructor(_cipher: "AES", key: ArrayBuffer) {
    this.key = toBase64(new Uint8Array(key));
  }
}

class Mode {
  private readonly mode: "CBC" | "ECB";
  private readonly key: string;
  private readonly iv: string;
  constructor(mode: "CBC" | "ECB", cipher: object, iv?: ArrayBuffer) {
    this.mode = mode;
    this.key = (cipher as BlockCipher).key;
    this.iv = iv === undefined ? "" : toBase64(new Uint8Array(iv));
  }
  encrypt(data: Uint8Array): ArrayBuffer {
    const { mode, key, iv } = this;
    const sealed = ask({ op: "aes", mode, key, iv, data: toBase64(data) }) as string;
    return fromBase64(sealed).buffer as ArrayBuffer;
  }
}

export const crypt: ModdableCrypt = { Digest, HMAC, BlockCipher, Mode };
