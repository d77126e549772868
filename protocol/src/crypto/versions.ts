/**
 * Which packet versions there are.
 *
 * [portable]
 */

/** "1" is ChaCha20-Poly1305 (RFC 8439), "2" is AES-128-CCM (RFC 3610). */
export type AeadVersion = "1" | "2";

/** The same two after an X25519 exchange (section 2b): "3" seals as "1" does, "4" as "2". */
export type ForwardVersion = "3" | "4";

/** `v` of a packet. */
export type Version = AeadVersion | ForwardVersion;

export const isForward = (v: unknown): v is ForwardVersion => v === "3" || v === "4";

export const isVersion = (v: unknown): v is Version => v === "1" || v === "2" || isForward(v);

/** The AEAD of a version. */
export const aeadOf = (v: Version): AeadVersion => (v === "1" || v === "3" ? "1" : "2");
