/**
 * Section 2, "Keys are a pure function of (agent_id, agent_token, v, sid)": everything that is
 * derived from the end-to-end secret, and the labels that keep the derivations apart.
 *
 * Wiping: the suite's key handles and derived arrays live as long as their session object; neither
 * V8 nor a board's interpreter lets us overwrite strings, so the secret itself is not wiped.
 *
 * [portable]
 */

import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes, concatBytes, toHex, utf8Bytes } from "../encoding/bytes.ts";
import { hkdfExpandLabel, hkdfExtract } from "./hkdf.ts";
import type { AeadKey, HmacKey, Suite, Version } from "./suite.ts";

const SALT_LABEL = "blindrelay|"; // || agent_id
const SESSION_LABEL = "session|"; // || v || "|" || sid
const SIGNATURE_LABEL = "signature";
const EPOCH_LABEL = "epoch|"; // || decimal boot count || "|" || hex of device randomness [|| "|" || serial]
const SID_LABEL = "sid|"; // || v || "|" || C
const NEXT_EPOCH_LABEL = "next";

/** One direction of a session: its AEAD key and the IV that the nonce is made from. */
export interface DirectionKeys {
  readonly key: AeadKey;
  /** 12 bytes. */
  readonly iv: Uint8Array;
}

export interface SessionKeys {
  /** Client to agent. */
  readonly c2a: DirectionKeys;
  /** Agent to client. */
  readonly a2c: DirectionKeys;
}

/** PRK = HKDF-Extract(salt = "blindrelay|" || agent_id, IKM = UTF-8(agent_token)), as a key. */
export const extractPrk = (suite: Suite, agentId: string, agentToken: string): HmacKey =>
  suite.hmacKey(hkdfExtract(suite, asciiBytes(SALT_LABEL + agentId), utf8Bytes(agentToken)));

/** OKM = HKDF-Expand(PRK, "session|" v "|" sid, 88) = c2a key 32, iv 12, a2c key 32, iv 12. */
export const deriveSessionKeys = (
  suite: Suite,
  prk: HmacKey,
  v: Version,
  sid: string,
): SessionKeys => {
  const okm = hkdfExpandLabel(suite, prk, `${SESSION_LABEL + v}|${sid}`, 88);
  return {
    c2a: { key: suite.aeadKey(v, okm.subarray(0, 32)), iv: okm.subarray(32, 44) },
    a2c: { key: suite.aeadKey(v, okm.subarray(44, 76)), iv: okm.subarray(76, 88) },
  };
};

/** The key of the envelope's optional signature, 32 bytes. */
export const deriveSignatureKey = (suite: Suite, prk: HmacKey): HmacKey =>
  suite.hmacKey(hkdfExpandLabel(suite, prk, SIGNATURE_LABEL, 32));

/** base64url(HMAC-SHA256(signature key, ASCII(payload))), 43 characters. */
export const signPayload = (suite: Suite, signatureKey: HmacKey, payload: string): string =>
  toBase64url(suite.hmac(signatureKey, asciiBytes(payload)));

/**
 * The secret of this start of the agent, 32 bytes. `deviceRandom`: 16 bytes, mixed in and never
 * relied on; freshness comes from `bootCount`. `serialNumber`: null where there is none.
 */
export const deriveEpochSecret = (
  suite: Suite,
  prk: HmacKey,
  bootCount: number,
  deviceRandom: Uint8Array,
  serialNumber: string | null,
): Uint8Array => {
  const label = `${EPOCH_LABEL + bootCount}|${toHex(deviceRandom)}`;
  const info = asciiBytes(label);
  return suite.hmac(
    prk,
    serialNumber === null ? info : concatBytes(info, utf8Bytes(`|${serialNumber}`)),
  );
};

/** The agent's part of a sid made from the client's part `c`: 22 characters. */
export const deriveAgentPart = (
  suite: Suite,
  epochSecret: Uint8Array,
  v: Version,
  c: string,
): string =>
  toBase64url(
    suite.hmac(suite.hmacKey(epochSecret), asciiBytes(`${SID_LABEL + v}|${c}`)).subarray(0, 16),
  );

/** "One epoch, one session": the secret that follows when a session is stored. */
export const nextEpochSecret = (suite: Suite, epochSecret: Uint8Array): Uint8Array =>
  suite.hmac(suite.hmacKey(epochSecret), asciiBytes(NEXT_EPOCH_LABEL));
