/**
 * The crypto port: what the core needs from a runtime, synchronous. Implemented by src/suites on
 * Node and in browsers, and by each board's edge. Keys are opaque handles, so that Node can hold
 * KeyObjects (a raw key makes every call slower there).
 *
 * [portable]
 */

/** "1" is ChaCha20-Poly1305 (RFC 8439), "2" is AES-128-CCM (RFC 3610). */
export type AeadVersion = "1" | "2";

/** The same two after an X25519 exchange (section 2b): "3" seals as "1" does, "4" as "2". */
export type ForwardVersion = "3" | "4";

/** `v` of a packet. */
export type Version = AeadVersion | ForwardVersion;

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

export const isForward = (v: unknown): v is ForwardVersion => v === "3" || v === "4";

export const isVersion = (v: unknown): v is Version => v === "1" || v === "2" || isForward(v);

/** The AEAD of a version. */
export const aeadOf = (v: Version): AeadVersion => (v === "1" || v === "3" ? "1" : "2");
