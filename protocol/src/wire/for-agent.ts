/**
 * What an agent reads on its link (section 3), by own properties.
 *
 * [portable]
 */
import { decodeJson, isObject, ownString } from "../encoding/json.ts";
import type { Authenticated, AuthFailed } from "./auth-response.ts";
import { decodeAuthResponse } from "./auth-response.ts";
import type { AgentsPacket } from "./envelope.ts";
import { BARE, decodeEnvelopeForAgent } from "./envelope.ts";
import type { RelayError } from "./error.ts";
import { decodeError } from "./error.ts";
import {
  FIELD_TYPE,
  FIELD_V,
  TYPE_AUTH_RESPONSE,
  TYPE_ERROR,
  TYPE_PING,
  TYPE_RELAY,
} from "./names.ts";
import { PING_TEXT } from "./ping.ts";
import type { Unknown, Unreadable } from "./unreadable.ts";

export type MessageForAgent =
  | AgentsPacket
  | Authenticated
  | AuthFailed
  | RelayError
  | { readonly kind: "ping" }
  | Unknown
  | Unreadable;

const QUOTED_TYPE = `"${FIELD_TYPE}"`;

/**
 * Whether a text would be a packet if it were valid JSON, without parsing it, which costs a board
 * memory.
 */
const looksLikePacket = (text: string): boolean =>
  text.charAt(2) === FIELD_V && text.indexOf(QUOTED_TYPE) < 0 && text.indexOf("\\") < 0;

/** Reads one text message; never throws. */
export const decodeForAgent = (text: string): MessageForAgent => {
  if (text === PING_TEXT) return { kind: "ping" };
  if (looksLikePacket(text)) return { kind: "packet", text: text, form: BARE, signature: null };
  const fields = decodeJson(text);
  if (!isObject(fields)) return { kind: "unreadable" };
  const type = ownString(fields, FIELD_TYPE);
  if (type === undefined) return { kind: "packet", text: text, form: BARE, signature: null };
  if (type === TYPE_PING) return { kind: "ping" };
  if (type === TYPE_AUTH_RESPONSE) return decodeAuthResponse(fields);
  const message =
    type === TYPE_RELAY
      ? decodeEnvelopeForAgent(fields)
      : type === TYPE_ERROR
        ? decodeError(fields)
        : undefined;
  if (message === undefined) return { kind: "unknown" };
  return message === null ? { kind: "unreadable" } : message;
};
