/**
 * The texts between a client and the relay (section 3): what we write, and what a received text
 * is. Their shapes are defined in @blindrelay/protocol/schema; here only what a client acts on is
 * looked at, by own properties, and unknown fields are ignored.
 */
import { decodeJson, encodeJson, isObject, own, ownString } from "@blindrelay/protocol/crypto";

/** A JSON object that came from the relay. */
export type Fields = { readonly [key: string]: unknown };

export type Received =
  /** A message with an own string `type`. */
  | { readonly kind: "typed"; readonly type: string; readonly fields: Fields }
  /** A packet, bare or out of its envelope; `first` is the first part of its sid. */
  | { readonly kind: "packet"; readonly first: string; readonly text: string }
  | { readonly kind: "noise" };

export const PONG = '{"type":"pong"}';

export const encodeAuth = (
  token: { readonly api_token: string } | { readonly session_token: string },
  presence: boolean,
): string =>
  encodeJson({
    type: "auth",
    ...token,
    client_type: "client",
    ...(presence ? { presence: true } : {}),
  }) as string;

export const encodeEnvelope = (packet: string, agentId: string, requestId: string): string =>
  encodeJson({
    type: "relay",
    payload: packet,
    agent_id: agentId,
    request_id: requestId,
  }) as string;

/** The first part of a sid: all before the first dot. */
export const firstPart = (sid: string): string => {
  const dot = sid.indexOf(".");
  return dot < 0 ? sid : sid.substring(0, dot);
};

/** What a text from the relay is. Never throws. */
export const readMessage = (text: string): Received => {
  const fields = decodeJson(text);
  if (!isObject(fields)) return { kind: "noise" };
  const type = ownString(fields, "type");
  if (type === undefined) return packetIn(fields, text);
  if (type !== "relay") return { kind: "typed", type, fields };
  const payload = own(fields, "payload");
  if (typeof payload === "string") {
    const packet = decodeJson(payload);
    return isObject(packet) ? packetIn(packet, payload) : { kind: "noise" };
  }
  // Some peers put the packet itself where its text belongs.
  return isObject(payload) ? packetIn(payload, JSON.stringify(payload)) : { kind: "noise" };
};

const packetIn = (packet: Fields, text: string): Received => {
  const sid = ownString(packet, "sid");
  return sid === undefined ? { kind: "noise" } : { kind: "packet", first: firstPart(sid), text };
};

/** A field that counts something (seconds), or 0. */
export const ownCount = (fields: Fields, key: string): number => {
  const value = own(fields, key);
  return typeof value === "number" && value > 0 && value < Number.MAX_SAFE_INTEGER ? value : 0;
};
