/**
 * The crypto port: what the core needs from a runtime, synchronous. Implemented by src/suites on
 * Node and in browsers, and by each board's edge. Keys are opaque handles, so that Node can hold
 * KeyObjects (a raw key makes every call slower there).
 *
 * [portable]
 */
import type { AeadVersion } from "./versions.ts";

/** A key for HMAC-SHA256, in the suite's own form. */
export type HmacKey = { readonly hmacKey: unknown };

/** A key for one AEAD, in the suite's own form. */
export type AeadKey = { readonly aeadKey: unknown };

export interface Suite {
  /** `key`: any length (RFC 2104). */
  hmacKey(key: Uint8Array): HmacKey;
  /** HMAC-SHA256, 32 bytes. */
  hmac(key: HmacKey, data: Uint8Array): Uint8Array;
  /** `key`: 32 bytes; version "2" uses the first 16. */
  aeadKey(v: AeadVersion, key: Uint8Array): AeadKey;
  /** `nonce`: 12 bytes. Returns ciphertext || 16-byte tag. */
  seal(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, plaintext: Uint8Array): Uint8Array;
  /**
   * The plaintext, or null if the tag does not verify or the input is shorter than 16 bytes. May
   * overwrite `sealed`.
   */
  open(key: AeadKey, nonce: Uint8Array, aad: Uint8Array, sealed: Uint8Array): Uint8Array | null;
}
