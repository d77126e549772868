/**
 * The suite on Node: node:crypto. Keys are KeyObjects, because passing a raw key to every call
 * costs more. Nonces and AADs are passed in scratch buffers: V8 moves a small array out of its heap
 * when C++ requests it, and the garbage that this leaves costs a tenth of the packet.
 */
import {
  type CipherGCMTypes,
  createCipheriv,
  createDecipheriv,
  createHmac,
  createSecretKey,
  getCiphers,
  type KeyObject,
} from "node:crypto";
import type { AeadKey, HmacKey, Suite } from "../crypto/suite.ts";
import type { Version } from "../crypto/versions.ts";
import { NONCE_BYTES, TAG_BYTES } from "../spec.ts";

interface NodeAeadKey {
  readonly cipher: "chacha20-poly1305" | "aes-128-ccm";
  readonly key: KeyObject;
}

const OPTIONS = { authTagLength: TAG_BYTES };

/** node:crypto's types distinguish GCM and CCM by overloads; the calls are the same. */
const asAead = (cipher: string): CipherGCMTypes => cipher as CipherGCMTypes;

/** Read before the call that receives them returns. */
const scratchNonce = Buffer.alloc(NONCE_BYTES);
const scratchAad = Buffer.alloc(128);

/** `bytes` in the scratch buffer, or `bytes` itself if it does not fit. */
const inScratch = (scratch: Buffer, bytes: Uint8Array): Uint8Array => {
  if (bytes.length > scratch.length) return bytes;
  scratch.set(bytes, 0);
  return scratch.subarray(0, bytes.length);
};

/** A suite for Node 20 and newer; it is stateless and may be shared. */
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
    const aead = createCipheriv(asAead(cipher), secret, inScratch(scratchNonce, nonce), OPTIONS);
    aead.setAAD(inScratch(scratchAad, aad), { plaintextLength: plaintext.length });
    // From Buffer's pool: separate memory costs half as much as the cipher.
    const sealed = Buffer.allocUnsafe(plaintext.length + TAG_BYTES);
    sealed.set(aead.update(plaintext)); // complete: neither cipher pads to blocks
    aead.final();
    sealed.set(aead.getAuthTag(), plaintext.length);
    return sealed;
  },
  open: (key: AeadKey, nonce, aad, sealed) => {
    const length = sealed.length - TAG_BYTES;
    if (length < 0) return null;
    const { cipher, key: secret } = key.aeadKey as NodeAeadKey;
    try {
      // Throws in an engine without the cipher, which then verifies nothing.
      const iv = inScratch(scratchNonce, nonce);
      const aead = createDecipheriv(asAead(cipher), secret, iv, OPTIONS);
      aead.setAuthTag(sealed.subarray(length));
      aead.setAAD(inScratch(scratchAad, aad), { plaintextLength: length });
      // CCM verifies in update, ChaCha20-Poly1305 in final; both throw on a wrong tag.
      const plaintext = aead.update(sealed.subarray(0, length));
      aead.final();
      return plaintext;
    } catch {
      return null;
    }
  },
});

/** Of both packet versions. */
const CIPHERS = ["chacha20-poly1305", "aes-128-ccm"];

/**
 * The same, or noble's suite where node:crypto lacks a cipher, as in engines with BoringSSL (Bun,
 * Electron).
 */
export const loadNodeSuite = async (): Promise<Suite> => {
  const known = getCiphers();
  if (CIPHERS.every((name) => known.includes(name))) return nodeSuite();
  return (await import("./noble.ts")).nobleSuite();
};
