/**
 * What suites "3" and "4" derive beyond "1" and "2": a seed that moves before each start, and the
 * keys of a session from an X25519 exchange. Whoever later gets the secret and the seed finds
 * neither the earlier seeds nor the exchanged value. No runtime speaks these suites yet.
 *
 * [portable]
 */
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes, concatBytes } from "../encoding/bytes.ts";
import { hkdfExpandLabel, hkdfExtract } from "./hkdf.ts";
import type { DirectionKeys, SessionKeys } from "./keys.ts";
import { deriveEpochSecret } from "./secret-keys.ts";
import type { ForwardVersion, HmacKey, Suite, Version } from "./suite.ts";

/** X25519 of RFC 7748. Private and public values: 32 bytes, which are clamped and masked. */
export interface X25519 {
  publicKey(privateKey: Uint8Array): Uint8Array;
  /** Null if the result is zero, which a public value of small order gives. */
  shared(privateKey: Uint8Array, publicKey: Uint8Array): Uint8Array | null;
}

const aeadVersion = (v: ForwardVersion): Version => (v === "3" ? "1" : "2");

const hmacText = (suite: Suite, key: Uint8Array, label: string): Uint8Array =>
  suite.hmac(suite.hmacKey(key), asciiBytes(label));

const direction = (suite: Suite, v: ForwardVersion, okm: Uint8Array): DirectionKeys => ({
  key: suite.aeadKey(aeadVersion(v), okm.subarray(0, 32)),
  iv: okm.subarray(32, 44),
});

const bothDirections = (suite: Suite, v: ForwardVersion, okm: Uint8Array): SessionKeys => ({
  c2a: direction(suite, v, okm),
  a2c: direction(suite, v, okm.subarray(44)),
});

/** The seed that is stored, and read back, before `seed` is used for a start; 32 bytes. */
export const nextSeed = (suite: Suite, seed: Uint8Array): Uint8Array =>
  hmacText(suite, seed, "seed");

/**
 * The secrets of one start, 32 bytes each. `seed`: the one before `nextSeed`; the caller erases it
 * afterwards. The rest as in `deriveEpochSecret`, with the count that was stored for this start.
 */
export const deriveStart = (
  suite: Suite,
  seed: Uint8Array,
  prk: HmacKey,
  bootCount: number,
  deviceRandom: Uint8Array,
  serialNumber: string | null,
): { readonly epoch: Uint8Array; readonly dh: Uint8Array } => {
  const input = deriveEpochSecret(suite, prk, bootCount, deviceRandom, serialNumber);
  const start = suite.hmac(suite.hmacKey(seed), input);
  const secrets = { epoch: hmacText(suite, start, "epoch"), dh: hmacText(suite, start, "dh") };
  start.fill(0);
  return secrets;
};

/** Replaces `dh` whenever a session is stored. */
export const nextDh = (suite: Suite, dh: Uint8Array): Uint8Array => hmacText(suite, dh, "next");

/** The agent's private value for the client's `x`, 32 bytes: a repeat gets the same answer. */
export const deriveAgentPrivate = (
  suite: Suite,
  dh: Uint8Array,
  v: ForwardVersion,
  sid: string,
  x: Uint8Array,
): Uint8Array => hmacText(suite, dh, `x25519|${v}|${sid}|${toBase64url(x)}`);

/** The keys of seq 0 and 1 of a whole sid, and the 32 bytes that chain them to the later keys. */
export const deriveHandshakeKeys = (
  suite: Suite,
  prk: HmacKey,
  v: ForwardVersion,
  sid: string,
): SessionKeys & { readonly chain: Uint8Array } => {
  const okm = hkdfExpandLabel(suite, prk, `session|${v}|${sid}`, 120);
  return { ...bothDirections(suite, v, okm), chain: okm.subarray(88) };
};

/** The public values of one exchange, as received, and what it gave; 32 bytes each. */
export interface Exchange {
  /** The client's public value. */
  readonly x: Uint8Array;
  /** The agent's public value. */
  readonly y: Uint8Array;
  readonly shared: Uint8Array;
  /** The client's value with the device's pinned key; null for a device without one. */
  readonly pinned: Uint8Array | null;
}

/** The keys from seq 2 on, and the 16 bytes by which the agent proves them at seq 1. */
export const deriveDataKeys = (
  suite: Suite,
  v: ForwardVersion,
  sid: string,
  chain: Uint8Array,
  { x, y, shared, pinned }: Exchange,
): SessionKeys & { readonly confirm: Uint8Array } => {
  const prk = hkdfExtract(suite, chain, pinned === null ? shared : concatBytes(shared, pinned));
  const label = `data|${v}|${sid}|${toBase64url(x)}|${toBase64url(y)}`;
  const okm = hkdfExpandLabel(suite, suite.hmacKey(prk), label, 104);
  prk.fill(0);
  return { ...bothDirections(suite, v, okm), confirm: okm.subarray(88) };
};
