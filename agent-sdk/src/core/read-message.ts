/**
 * What came on the agent's link (section 3), read by own properties. Apart from what goes, because
 * a board needs the two at different moments.
 *
 * [portable]
 */
import { decodeJson, isObject, own, ownString } from "@blindrelay/protocol/crypto";
import type { Message } from "./messages.ts";
import { BARE } from "./messages.ts";
import { rawMember } from "./raw-member.ts";

const MALFORMED: Message = { kind: "malformed" };
const OTHER: Message = { kind: "other" };
const PING: Message = { kind: "ping" };

/** A number of seconds that makes sense, or null. */
const seconds = (value: unknown): number | null =>
  typeof value === "number" && value >= 0 ? value : null;

const textOr = (value: string | undefined, other: string): string =>
  value === undefined ? other : value;

const readEnvelope = (text: string, value: object): Message => {
  const payload = own(value, "payload");
  const signature = own(value, "signature");
  const requestId = ownString(value, "request_id");
  const asObject = isObject(payload);
  // As it stands in the text: parsing and writing it again would hide what section 2 refuses.
  const packet = asObject ? rawMember(text, "payload") : payload;
  if (typeof packet !== "string") return MALFORMED;
  // A client that writes out absent fields as null did not sign.
  const unsigned = signature === undefined || signature === null;
  if (!unsigned && typeof signature !== "string") return MALFORMED;
  return {
    kind: "packet",
    text: packet,
    form: {
      enveloped: true,
      asObject: asObject,
      requestId: requestId === undefined ? null : requestId,
    },
    signature: unsigned ? null : (signature as string),
  };
};

/** Reads one text message; never throws. */
export const readMessage = (text: string): Message => {
  const value = decodeJson(text);
  if (!isObject(value)) return MALFORMED;
  const type = ownString(value, "type");
  if (type === undefined) return { kind: "packet", text: text, form: BARE, signature: null };
  if (type === "relay") return readEnvelope(text, value);
  if (type === "ping") return PING;
  const code = ownString(value, "code");
  const error = textOr(ownString(value, "error"), "");
  const retryAfter = seconds(own(value, "retry_after"));
  if (type === "auth_response") {
    if (own(value, "status") === "authenticated") {
      const token = ownString(value, "session_token");
      const expiresIn = seconds(own(value, "expires_in"));
      return {
        kind: "accepted",
        sessionToken: token === undefined ? null : token,
        expiresIn: expiresIn === null ? 0 : expiresIn,
      };
    }
    return {
      kind: "failed",
      code: code === undefined ? null : code,
      text: error,
      retryAfter: retryAfter,
    };
  }
  if (type === "error" && code !== undefined) {
    const sid = ownString(value, "sid");
    return {
      kind: "error",
      code: code,
      text: error,
      sid: sid === undefined ? null : sid,
      retryAfter: retryAfter,
      reconnectIn: seconds(own(value, "reconnect_in")),
    };
  }
  return OTHER;
};
