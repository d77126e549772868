/**
 * What the relay reads on a link (section 3): `JSON.parse` with own-property checks, so the last
 * value of a repeated name counts, and `__proto__` is a name like any other. In a packet it reads
 * only the `sid`; it forwards the bytes as received.
 *
 * [portable]
 */
import { decodeJson, isObject, ownString } from "../encoding/json.ts";
import type { AuthMessage } from "./auth.ts";
import { decodeAuth } from "./auth.ts";
import type { Envelope } from "./envelope.ts";
import { decodeEnvelope } from "./envelope.ts";
import { FIELD_TYPE, TYPE_AUTH, TYPE_PING, TYPE_PONG, TYPE_RELAY } from "./names.ts";
import { bindablePart, decodePacket, isWhole } from "./packet.ts";
import { PING_TEXT, PONG_TEXT } from "./ping.ts";
import type { Unknown, Unreadable } from "./unreadable.ts";
import { UNKNOWN, UNREADABLE } from "./unreadable.ts";

/** The destination that a bare packet names. */
export interface PacketHead {
  readonly kind: "packet";
  readonly sid: string;
  /** The part of `sid` that the relay binds; null if it cannot be bound. */
  readonly first: string | null;
  readonly requestId: null;
}

export type MessageForRelay =
  | AuthMessage
  | Envelope
  | PacketHead
  | { readonly kind: "ping" }
  | { readonly kind: "pong" }
  | Unknown
  | Unreadable;

const PING: MessageForRelay = { kind: "ping" };
const PONG: MessageForRelay = { kind: "pong" };

/**
 * Reads one text message: a typed one if it has its own string `type`, else a packet, else
 * unreadable. Never throws.
 */
export const decodeForRelay = (text: string): MessageForRelay => {
  if (text === PONG_TEXT) return PONG;
  if (text === PING_TEXT) return PING;
  const fields = decodeJson(text);
  if (!isObject(fields)) return UNREADABLE;
  switch (ownString(fields, FIELD_TYPE)) {
    case undefined: {
      const packet = decodePacket(fields);
      return packet !== null && isWhole(packet.seq)
        ? {
            kind: "packet",
            sid: packet.sid,
            first: bindablePart(packet.sid),
            requestId: null,
          }
        : UNREADABLE;
    }
    case TYPE_RELAY:
      return decodeEnvelope(fields);
    case TYPE_PING:
      return PING;
    case TYPE_PONG:
      return PONG;
    case TYPE_AUTH:
      return decodeAuth(fields);
    default:
      return UNKNOWN;
  }
};
