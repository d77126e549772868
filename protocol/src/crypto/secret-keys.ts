/**
 * Section 2: what is derived once from the end-to-end secret, at a start or for the optional
 * signature. The labels here and in session-keys.ts keep the derivations separate.
 *
 * [portable]
 */
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes, concatBytes, toHex, utf8Bytes } from "../encoding/bytes.ts";
import { hkdfExpandLabel, hkdfExtract } from "./hkdf.ts";
import type { HmacKey, Suite } from "./suite.ts";

const SALT_LABEL = "blindrelay|"; // || agent_id
const SIGNATURE_LABEL = "signature";
// || decimal boot count || "|" || hex of device randomness [|| "|" || serial]
const EPOCH_LABEL = "epoch|";

/** PRK = HKDF-Extract(salt = "blindrelay|" || agent_id, IKM = UTF-8(agent_token)), as a key. */
export const extractPrk = (suite: Suite, agentId: string, agentToken: string): HmacKey =>
  suite.hmacKey(hkdfExtract(suite, asciiBytes(SALT_LABEL + agentId), utf8Bytes(agentToken)));

/** The key of the envelope's optional signature, 32 bytes. */
export const deriveSignatureKey = (suite: Suite, prk: HmacKey): HmacKey =>
  suite.hmacKey(hkdfExpandLabel(suite, prk, SIGNATURE_LABEL, 32));

/** base64url(HMAC-SHA256(signature key, ASCII(payload))), 43 characters. */
export const signPayload = (suite: Suite, signatureKey: HmacKey, payload: string): string =>
  toBase64url(suite.hmac(signatureKey, asciiBytes(payload)));

/**
 * The secret of this start of the agent, 32 bytes. `deviceRandom`: 16 bytes, mixed in but never
 * relied on; freshness comes from `bootCount`. `serialNumber`: null if there is none.
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
