/**
 * What a client reads on its link (section 3), by own properties.
 *
 * [portable]
 */
import { decodeJson, isObject, ownString } from "../encoding/json.ts";
import type { AgentPresence } from "./agent-status.ts";
import { decodeAgentStatus } from "./agent-status.ts";
import type { AuthFailed, ClientAuthenticated } from "./auth-response.ts";
import { decodeClientAuthResponse } from "./auth-response.ts";
import type { ClientsPacket } from "./envelope.ts";
import { decodeEnvelopeForClient } from "./envelope.ts";
import type { RelayError } from "./error.ts";
import { decodeError } from "./error.ts";
import {
  FIELD_TYPE,
  TYPE_AGENT_STATUS,
  TYPE_AUTH_RESPONSE,
  TYPE_ERROR,
  TYPE_PING,
  TYPE_PONG,
  TYPE_RELAY,
} from "./names.ts";
import { decodePacket, firstPart } from "./packet.ts";
import { PING_TEXT } from "./ping.ts";
import type { Unknown, Unreadable } from "./unreadable.ts";

export type MessageForClient =
  | ClientsPacket
  | AgentPresence
  | ClientAuthenticated
  | AuthFailed
  | RelayError
  | { readonly kind: "ping" }
  | { readonly kind: "pong" }
  | Unknown
  | Unreadable;

const orUnreadable = <T>(message: T | null): T | Unreadable =>
  message === null ? { kind: "unreadable" } : message;

const decodeBare = (text: string, fields: object): ClientsPacket | null => {
  const packet = decodePacket(fields);
  return packet === null ? null : { kind: "packet", first: firstPart(packet.sid), text: text };
};

/** Reads one text message; never throws. */
export const decodeForClient = (text: string): MessageForClient => {
  if (text === PING_TEXT) return { kind: "ping" };
  const fields = decodeJson(text);
  if (!isObject(fields)) return { kind: "unreadable" };
  switch (ownString(fields, FIELD_TYPE)) {
    case undefined:
      return orUnreadable(decodeBare(text, fields));
    case TYPE_RELAY:
      return orUnreadable(decodeEnvelopeForClient(fields));
    case TYPE_PING:
      return { kind: "ping" };
    case TYPE_PONG:
      return { kind: "pong" };
    case TYPE_AUTH_RESPONSE:
      return decodeClientAuthResponse(fields);
    case TYPE_ERROR:
      return orUnreadable(decodeError(fields));
    case TYPE_AGENT_STATUS:
      return orUnreadable(decodeAgentStatus(fields));
    default:
      return { kind: "unknown" };
  }
};
