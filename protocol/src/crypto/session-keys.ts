/**
 * Section 2, "Keys are a pure function of (agent_id, agent_token, v, sid)": what is derived for
 * each session. What is derived only once is in secret-keys.ts, because a board loads either module
 * only while it uses it.
 *
 * Wiping: the suite's key handles and derived arrays live as long as their session object (on the
 * agent also from the answer to an opening until its first packet, or the next opening); neither V8
 * nor a board's interpreter lets us overwrite strings, so the secret itself is not wiped.
 *
 * [portable]
 */
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes } from "../encoding/bytes.ts";
import { hkdfExpandLabel } from "./hkdf.ts";
import type { DirectionKeys } from "./packet.ts";
import { DIRECTION_BYTES, makeDirection } from "./packet.ts";
import type { HmacKey, Suite } from "./suite.ts";
import type { Version } from "./versions.ts";

const SESSION_LABEL = "session|"; // || v || "|" || sid
const SID_LABEL = "sid|"; // || v || "|" || C
const NEXT_EPOCH_LABEL = "next";
export interface SessionKeys {
  /** Client to agent. */
  readonly c2a: DirectionKeys;
  /** Agent to client. */
  readonly a2c: DirectionKeys;
}

/**
 * OKM = HKDF-Expand(PRK, "session|" v "|" sid, 88) = c2a key 32, iv 12, a2c key 32, iv 12; suites
 * "3" and "4" take 120 bytes, of which the last 32 are the chain.
 */
export const expandSession = (
  suite: Suite,
  prk: HmacKey,
  v: Version,
  sid: string,
  length: number,
): Uint8Array => hkdfExpandLabel(suite, prk, `${SESSION_LABEL + v}|${sid}`, length);

export const deriveSessionKeys = (
  suite: Suite,
  prk: HmacKey,
  v: Version,
  sid: string,
): SessionKeys => {
  const okm = expandSession(suite, prk, v, sid, 2 * DIRECTION_BYTES);
  return {
    c2a: makeDirection(suite, v, okm),
    a2c: makeDirection(suite, v, okm.subarray(DIRECTION_BYTES)),
  };
};

/** `c2a` of the same: everything needed to seal or verify an opening. */
export const deriveClientKeys = (
  suite: Suite,
  prk: HmacKey,
  v: Version,
  sid: string,
): DirectionKeys => makeDirection(suite, v, expandSession(suite, prk, v, sid, DIRECTION_BYTES));

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

/** "One epoch, a window of sessions": the secret that replaces one whose window is full. */
export const nextEpochSecret = (suite: Suite, epochSecret: Uint8Array): Uint8Array =>
  suite.hmac(suite.hmacKey(epochSecret), asciiBytes(NEXT_EPOCH_LABEL));
