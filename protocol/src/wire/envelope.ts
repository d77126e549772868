/**
 * `relay` (section 3): an envelope around a payload, client to agent through the relay, and back.
 * Each side reads what it needs; the relay forwards the received bytes.
 *
 * [portable]
 */
import { decodeJson, encodeJson, isObject, own, ownString } from "../encoding/json.ts";
import { MAX_REQUEST_ID_LENGTH } from "../spec.ts";
import {
  FIELD_AGENT_ID,
  FIELD_PAYLOAD,
  FIELD_REQUEST_ID,
  FIELD_SIGNATURE,
  FIELD_TYPE,
  TYPE_RELAY,
} from "./names.ts";
import type { PacketFields } from "./packet.ts";
import { decodePacket, firstPart, hasCharacters, isWhole } from "./packet.ts";

/** The text of an envelope. `agentId` is valid. */
export const encodeEnvelope = (
  payload: string,
  agentId: string,
  requestId: string | null,
): string => {
  const request = requestId === null ? "" : `,"${FIELD_REQUEST_ID}":${encodeJson(requestId)}`;
  return `{"${FIELD_TYPE}":"${TYPE_RELAY}","${FIELD_PAYLOAD}":${encodeJson(payload)},"${FIELD_AGENT_ID}":"${agentId}"${request}}`;
};

/** The packet in this text; null if it is not a packet. */
const packetIn = (payload: string): PacketFields | null => {
  if (!/^[ \t\r\n]*\{/.test(payload)) return null;
  const fields = decodeJson(payload);
  return isObject(fields) ? decodePacket(fields) : null;
};

// ---- for agents

/** The form in which a packet reached an agent, and therefore that of the answer. */
export interface Form {
  /** A `relay` envelope around it, or the bare packet. */
  readonly enveloped: boolean;
  /** Copied into every answering envelope; null if there was none. */
  readonly requestId: string | null;
}

export const BARE: Form = { enveloped: false, requestId: null };

/** A packet for an agent, bare or taken out of its envelope. */
export interface AgentsPacket {
  readonly kind: "packet";
  /** The packet's own text, byte for byte. */
  readonly text: string;
  readonly form: Form;
  /** Null: there is none; otherwise it must be verified over `text`. */
  readonly signature: string | null;
}

/** A packet's text (ASCII JSON) in the same form as its call. */
export const encodeInForm = (packet: string, form: Form, agentId: string): string =>
  form.enveloped ? encodeEnvelope(packet, agentId, form.requestId) : packet;

/** The packet in an envelope's fields; null if it is unreadable. */
export const decodeEnvelopeForAgent = (fields: object): AgentsPacket | null => {
  const payload = ownString(fields, FIELD_PAYLOAD);
  const signature = own(fields, FIELD_SIGNATURE);
  const requestId = ownString(fields, FIELD_REQUEST_ID);
  if (payload === undefined) return null;
  // Other relays may write absent fields as null; ours refuses them.
  const unsigned = signature === undefined || signature === null;
  if (!unsigned && typeof signature !== "string") return null;
  return {
    kind: "packet",
    text: payload,
    form: { enveloped: true, requestId: requestId === undefined ? null : requestId },
    signature: unsigned ? null : (signature as string),
  };
};

// ---- for clients

/** A packet for a client, bare or taken out of its envelope. */
export interface ClientsPacket {
  readonly kind: "packet";
  /** The first part of its sid. */
  readonly first: string;
  readonly text: string;
}

/** The packet in an envelope's fields; null if there is none. */
export const decodeEnvelopeForClient = (fields: object): ClientsPacket | null => {
  const payload = ownString(fields, FIELD_PAYLOAD);
  if (payload === undefined) return null;
  const packet = packetIn(payload);
  return packet === null ? null : { kind: "packet", first: firstPart(packet.sid), text: payload };
};

// ---- for the relay

/** The fields needed for routing. */
export interface Envelope {
  readonly kind: "relay";
  /** The sid of the packet in `payload`; null if `payload` is not a packet. */
  readonly sid: string | null;
  readonly requestId: string | null;
  /** Null if the envelope names no agent. */
  readonly agentId: string | null;
  /** Why it is a BAD_MESSAGE, or null. */
  readonly fault: string | null;
}

const isRequestId = (value: unknown): boolean =>
  typeof value === "string" && hasCharacters(value, MAX_REQUEST_ID_LENGTH);

/** `requestId` is also undefined for a packet, which is never refused for its request_id. */
const envelopeFault = (
  payload: unknown,
  signature: unknown,
  agentId: unknown,
  requestId: unknown,
): string | null => {
  if (typeof payload !== "string") return `${FIELD_PAYLOAD} must be a string`;
  if (signature !== undefined && typeof signature !== "string")
    return `${FIELD_SIGNATURE} must be a string`;
  if (agentId !== undefined && typeof agentId !== "string")
    return `${FIELD_AGENT_ID} must be a string`;
  if (requestId !== undefined && !isRequestId(requestId))
    return `${FIELD_REQUEST_ID} must be a string of 1 to ${MAX_REQUEST_ID_LENGTH} characters`;
  return null;
};

export const decodeEnvelope = (fields: object): Envelope => {
  const payload = own(fields, FIELD_PAYLOAD);
  const packet = typeof payload === "string" ? packetIn(payload) : null;
  const sid = packet !== null && isWhole(packet.seq) ? packet.sid : null;
  const requestId = own(fields, FIELD_REQUEST_ID);
  const agentId = own(fields, FIELD_AGENT_ID);
  return {
    kind: "relay",
    sid: sid,
    requestId: typeof requestId === "string" ? requestId : null,
    agentId: typeof agentId === "string" ? agentId : null,
    fault: envelopeFault(
      payload,
      own(fields, FIELD_SIGNATURE),
      agentId,
      sid === null ? requestId : undefined,
    ),
  };
};

const OPENING_BRACE = 0x7b;

/** An agent's envelope with its `agent_id` inserted at the front; every other byte is unchanged. */
export const withAgentId = (frame: Uint8Array, agentId: string): Uint8Array => {
  const inside = frame.indexOf(OPENING_BRACE) + 1;
  const member = `"${FIELD_AGENT_ID}":"${agentId}",`;
  const whole = new Uint8Array(frame.length + member.length);
  whole.set(frame.subarray(0, inside), 0);
  for (let i = 0; i < member.length; i++) whole[inside + i] = member.charCodeAt(i);
  whole.set(frame.subarray(inside), inside + member.length);
  return whole;
};
