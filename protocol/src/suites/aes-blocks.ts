/**
 * Adds suite "2" (AES-128-CCM) to a suite that has "1", using any AES in CBC and ECB mode: @noble
 * in browsers, native code on boards.
 */
import type { AesBlocks } from "../crypto/ccm.ts";
import { ccmOpen, ccmSeal } from "../crypto/ccm.ts";
import type { AeadKey, Suite } from "../crypto/suite.ts";
import { TAG_BYTES } from "../spec.ts";
import { checkAeadKey } from "./noble-chacha.ts";

type Key = { readonly one: AeadKey } | { readonly two: AesBlocks };

/** `aesBlocks`: AES under a key of 16 bytes, which it may keep. */
export const withAes = (one: Suite, aesBlocks: (key: Uint8Array) => AesBlocks): Suite => ({
  ...one,
  aeadKey: (v, key) => {
    checkAeadKey(key);
    const handle: Key =
      v === "1" ? { one: one.aeadKey(v, key) } : { two: aesBlocks(key.slice(0, 16)) };
    return { aeadKey: handle };
  },
  seal: (key: AeadKey, nonce, aad, plaintext) => {
    const handle = key.aeadKey as Key;
    return "one" in handle
      ? one.seal(handle.one, nonce, aad, plaintext)
      : ccmSeal(handle.two, nonce, aad, plaintext);
  },
  open: (key: AeadKey, nonce, aad, sealed) => {
    if (sealed.length < TAG_BYTES) return null;
    const handle = key.aeadKey as Key;
    return "one" in handle
      ? one.open(handle.one, nonce, aad, sealed)
      : ccmOpen(handle.two, nonce, aad, sealed);
  },
});
