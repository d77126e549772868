/**
 * The suite on Node: node:crypto. Keys are KeyObjects, because handing a raw key to every call
 * costs 12 us more for each HMAC and each cipher.
 */
import {
  type CipherGCMTypes,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  type KeyObject,
} from "node:crypto";
import type { AeadKey, HmacKey, Suite, Version } from "../crypto/suite.ts";
import { TAG_BYTES } from "../spec.ts";

interface NodeAeadKey {
  readonly cipher: "chacha20-poly1305" | "aes-128-ccm";
  readonly key: KeyObject;
}

const OPTIONS = { authTagLength: TAG_BYTES };

/** node:crypto's types know GCM and CCM apart by overloads; the calls are the same. */
const asAead = (cipher: string): CipherGCMTypes => cipher as CipherGCMTypes;

/** A suite for Node 20 and newer; it holds no state and may be shared. */
export const nodeSuite = (): Suite => ({
  hmacKey: (key) => ({ hmacKey: createSecretKey(key) }),
  hmac: (key: HmacKey, data) =>
    createHmac("sha256", key.hmacKey as KeyObject)
      .update(data)
      .digest(),
  aeadKey: (v: Version, key) => {
    if (key.length !== 32) throw new RangeError("an AEAD key is derived as 32 bytes");
    const handle: NodeAeadKey =
      v === "1"
        ? { cipher: "chacha20-poly1305", key: createSecretKey(key) }
        : { cipher: "aes-128-ccm", key: createSecretKey(key.subarray(0, 16)) };
    return { aeadKey: handle };
  },
  seal: (key: AeadKey, nonce, aad, plaintext) => {
    const { cipher, key: secret } = key.aeadKey as NodeAeadKey;
    const aead = createCipheriv(asAead(cipher), secret, nonce, OPTIONS);
    aead.setAAD(aad, { plaintextLength: plaintext.length });
    const head = aead.update(plaintext);
    const tail = aead.final();
    const sealed = new Uint8Array(head.length + tail.length + TAG_BYTES);
    sealed.set(head, 0);
    sealed.set(tail, head.length);
    sealed.set(aead.getAuthTag(), head.length + tail.length);
    return sealed;
  },
  open: (key: AeadKey, nonce, aad, sealed) => {
    const length = sealed.length - TAG_BYTES;
    if (length < 0) return null;
    const { cipher, key: secret } = key.aeadKey as NodeAeadKey;
    const aead = createDecipheriv(asAead(cipher), secret, nonce, OPTIONS);
    aead.setAuthTag(sealed.subarray(length));
    aead.setAAD(aad, { plaintextLength: length });
    try {
      // CCM verifies in update, ChaCha20-Poly1305 in final; both throw on a wrong tag.
      const plaintext = aead.update(sealed.subarray(0, length));
      aead.final();
      return plaintext;
    } catch {
      return null;
    }
  },
});
