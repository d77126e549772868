/**
 * What suites "3" and "4" derive beyond "1" and "2" (section 2b): a seed that moves before each
 * start, and the keys of a session from an X25519 exchange. Whoever later gets the secret and the
 * seed finds neither the earlier seeds nor the exchanged value.
 *
 * Derived bytes are overwritten as soon as the suite has its own handle of them.
 *
 * [portable]
 */
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes, concatBytes } from "../encoding/bytes.ts";
import { hkdfExpandLabel, hkdfExtract } from "./hkdf.ts";
import { DIRECTION_BYTES, makeDirection } from "./packet.ts";
import type { SessionKeys } from "./session-keys.ts";
import { expandSession } from "./session-keys.ts";
import type { HmacKey, Suite } from "./suite.ts";
import type { Version } from "./versions.ts";

/** A private value of RFC 7748, clamped. */
export interface X25519Pair {
  /** 32 bytes. */
  publicKey(): Uint8Array;
  /** 32 bytes; null if they are zero, which a public value of small order gives. */
  shared(publicKey: Uint8Array): Uint8Array | null;
  /** Overwrites the private value, as far as the runtime can. */
  end(): void;
}

/** X25519 of RFC 7748. */
export interface X25519 {
  /** `privateKey`: 32 bytes, which the caller overwrites. */
  pair(privateKey: Uint8Array): X25519Pair;
  /** In native code, so that a new exchange every hour costs nothing that matters. */
  readonly isNative: boolean;
}

export const CHAIN_BYTES = 32;
/** By which the agent proves the keys. */
export const CONFIRM_BYTES = 16;
/** The packet that brings the client's public value, and brings back the agent's. */
export const EXCHANGE_SEQ = 1;

const hmacText = (suite: Suite, key: Uint8Array, label: string): Uint8Array =>
  suite.hmac(suite.hmacKey(key), asciiBytes(label));

/** Both directions of `okm`, whose first 88 bytes are overwritten. */
const bothDirections = (suite: Suite, v: Version, okm: Uint8Array): SessionKeys => {
  const keys = okm.slice(0, 2 * DIRECTION_BYTES);
  okm.fill(0, 0, 2 * DIRECTION_BYTES);
  const directions = {
    c2a: makeDirection(suite, v, keys),
    a2c: makeDirection(suite, v, keys.subarray(DIRECTION_BYTES)),
  };
  // The IVs stay: without a key they say nothing.
  keys.fill(0, 0, 32);
  keys.fill(0, DIRECTION_BYTES, DIRECTION_BYTES + 32);
  return directions;
};

/** The secrets of one start, 32 bytes each. */
export interface StartSecrets {
  readonly epoch: Uint8Array;
  readonly dh: Uint8Array;
}

/**
 * `seed`: of this start, which is overwritten. `epochInput`: what `deriveEpochSecret`
 * gives for the count that was stored for this start.
 */
export const deriveStart = (
  suite: Suite,
  seed: Uint8Array,
  epochInput: Uint8Array,
): StartSecrets => {
  const start = suite.hmac(suite.hmacKey(seed), epochInput);
  seed.fill(0);
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
  v: Version,
  sid: string,
  x: Uint8Array,
): Uint8Array => hmacText(suite, dh, `x25519|${v}|${sid}|${toBase64url(x)}`);

/** The keys of seq 0 and 1 of a whole sid, and the 32 bytes that chain them to the later keys. */
export interface HandshakeKeys extends SessionKeys {
  readonly chain: Uint8Array;
}

export const deriveHandshakeKeys = (
  suite: Suite,
  prk: HmacKey,
  v: Version,
  sid: string,
): HandshakeKeys => {
  const okm = expandSession(suite, prk, v, sid, 2 * DIRECTION_BYTES + CHAIN_BYTES);
  const chain = okm.slice(2 * DIRECTION_BYTES);
  okm.fill(0, 2 * DIRECTION_BYTES);
  const keys = bothDirections(suite, v, okm);
  return { c2a: keys.c2a, a2c: keys.a2c, chain: chain };
};

/** The public values of one exchange, as received, and what it gave; 32 bytes each. */
interface Exchange {
  /** The client's public value. */
  readonly x: Uint8Array;
  /** The agent's public value. */
  readonly y: Uint8Array;
  readonly shared: Uint8Array;
  /** The client's value with the device's pinned key; null for a device without one. */
  readonly pinned: Uint8Array | null;
}

/** The keys from seq 2 on, and the 16 bytes by which the agent proves them at seq 1. */
interface DataKeys extends SessionKeys {
  readonly confirm: Uint8Array;
}

/** Overwrites `chain` and the shared values. */
export const deriveDataKeys = (
  suite: Suite,
  v: Version,
  sid: string,
  chain: Uint8Array,
  exchange: Exchange,
): DataKeys => {
  const shared = exchange.shared;
  const pinned = exchange.pinned;
  const input = pinned === null ? shared : concatBytes(shared, pinned);
  const prk = hkdfExtract(suite, chain, input);
  const label = `data|${v}|${sid}|${toBase64url(exchange.x)}|${toBase64url(exchange.y)}`;
  const length = 2 * DIRECTION_BYTES + CONFIRM_BYTES;
  const okm = hkdfExpandLabel(suite, suite.hmacKey(prk), label, length);
  for (const secret of [prk, input, shared, chain]) secret.fill(0);
  if (pinned !== null) pinned.fill(0);
  const confirm = okm.slice(2 * DIRECTION_BYTES);
  const keys = bothDirections(suite, v, okm);
  return { c2a: keys.c2a, a2c: keys.a2c, confirm: confirm };
};
