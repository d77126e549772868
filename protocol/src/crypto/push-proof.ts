/**
 * What somebody who has a device's push key adds to a program or a new secret for it (section 2,
 * "The push key"). Each proof is 43 characters of base64url, which a device compares as a text.
 * `serial`: a whole number from 1 to 2^53 - 1, never the same twice for a device.
 *
 * [portable]
 */
import { toBase64url } from "../encoding/base64url.ts";
import { asciiBytes } from "../encoding/bytes.ts";
import type { Suite } from "./suite.ts";

const prove = (suite: Suite, pushKey: string, text: string): string =>
  toBase64url(suite.hmac(suite.hmacKey(asciiBytes(pushKey)), asciiBytes(text)));

/** Of a program of `size` bytes with this SHA-256, `digest`, in lower-case hexadecimal. */
export const pushProof = (
  suite: Suite,
  pushKey: string,
  agentId: string,
  serial: number,
  size: number,
  digest: string,
): string => prove(suite, pushKey, `push|${agentId}|${serial}|${size}|${digest}`);

/** Of a new `agent_token` whose text has this SHA-256, `digest`, in lower-case hexadecimal. */
export const rekeyProof = (
  suite: Suite,
  pushKey: string,
  agentId: string,
  serial: number,
  digest: string,
): string => prove(suite, pushKey, `rekey|${agentId}|${serial}|${digest}`);
