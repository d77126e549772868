/**
 * Suite "1" with the audited @noble libraries: HMAC-SHA256 and ChaCha20-Poly1305. Separate from
 * noble.ts, because @noble's AES allocates 1 MB of tables as soon as it is loaded, which no
 * microcontroller has. Keys are the raw bytes.
 */
import { chacha20poly1305 } from "@noble/ciphers/chacha.js";
import { hmac } from "@noble/hashes/hmac.js";
import { sha256 } from "@noble/hashes/sha2.js";
import type { AeadKey, HmacKey, Suite } from "../crypto/suite.ts";
import { toHex, utf8Bytes } from "../encoding/bytes.ts";
import { TAG_BYTES } from "../spec.ts";

/** SHA-256, 32 bytes. */
export const nobleSha256 = (data: Uint8Array): Uint8Array => sha256(data);

/** Throws a RangeError for a key that is not 32 bytes. */
export const checkAeadKey = (key: Uint8Array): void => {
  if (key.length !== 32) throw new RangeError("an AEAD key is derived as 32 bytes");
};

/** A suite with only version "1": `aeadKey` throws for "2". It is stateless and may be shared. */
export const nobleChachaSuite = (): Suite => ({
  hmacKey: (key) => ({ hmacKey: Uint8Array.from(key) }),
  hmac: (key: HmacKey, data) => hmac(sha256, key.hmacKey as Uint8Array, data),
  aeadKey: (v, key) => {
    if (v !== "1") throw new Error('there is no AES here: use packet version "1"');
    checkAeadKey(key);
    return { aeadKey: Uint8Array.from(key) };
  },
  seal: (key: AeadKey, nonce, aad, plaintext) =>
    chacha20poly1305(key.aeadKey as Uint8Array, nonce, aad).encrypt(plaintext),
  open: (key: AeadKey, nonce, aad, sealed) => {
    if (sealed.length < TAG_BYTES) return null;
    try {
      return chacha20poly1305(key.aeadKey as Uint8Array, nonce, aad).decrypt(sealed);
    } catch {
      return null; // noble throws if the tag does not verify
    }
  },
});

/** SHA-256 of a text's UTF-8, in lower-case hexadecimal. */
export const sha256Hex = (text: string): string => toHex(sha256(utf8Bytes(text)));
