/**
 * Both directions of what the relay itself reads and writes on a link (section 3): the texts it
 * writes, and what it understands of the texts it gets. Of a packet it reads the `sid` only.
 *
 * Reading is `JSON.parse` with own-property checks: of a name that occurs twice the last value
 * counts, and `__proto__` is a name like any other. What is forwarded is the text as received.
 */
import {
  ERRORS,
  type ErrorCode,
  MAX_REPORT_LENGTH,
  MAX_REQUEST_ID_LENGTH,
  MAX_SID_PART_LENGTH,
} from "@blindrelay/protocol";
import type { AuthFailureCode as AuthResponseCode } from "@blindrelay/protocol/schema";
import type { AgentReport, ClientType } from "./link.ts";

type Fields = Record<string, unknown>;

// ---- reading

/** Where a packet says it belongs. */
export interface PacketHead {
  kind: "packet";
  sid: string;
  requestId: null;
}

/** A `relay` envelope, as far as routing needs it. */
export interface Envelope {
  kind: "relay";
  /** The sid of the packet in `payload`; null when `payload` is no packet. */
  sid: string | null;
  requestId: string | null;
  /** Null when the envelope names no agent. */
  agentId: string | null;
  /** What makes it a BAD_MESSAGE, or null. */
  fault: string | null;
}

/** A client's envelope without fault always names its agent. */
export type ClientEnvelope = Envelope & { agentId: string };

export interface AuthMessage {
  kind: "auth";
  /** Null when it has not the form of an `auth`; `fault` then says why. */
  credentials: Credentials | null;
  fault: string;
}

export interface Credentials {
  apiToken?: string;
  sessionToken?: string;
  clientType: ClientType;
  agentId?: string;
  presence: boolean;
  report: AgentReport;
}

export type Message =
  | AuthMessage
  | Envelope
  | PacketHead
  | { kind: "ping" }
  | { kind: "pong" }
  | { kind: "unknown" }
  | { kind: "bad" };

const BAD: Message = { kind: "bad" };
const PING: Message = { kind: "ping" };
const PONG: Message = { kind: "pong" };
const UNKNOWN: Message = { kind: "unknown" };

/** What a text message is: typed when it has an own string `type`, else a packet, else bad. */
export const readMessage = (text: string): Message => {
  const fields = parseObject(text);
  if (fields === null) {
    return BAD;
  }
  const type = own(fields, "type");
  if (typeof type !== "string") {
    const sid = packetSid(fields);
    return sid === null ? BAD : { kind: "packet", sid, requestId: null };
  }
  switch (type) {
    case "relay":
      return readEnvelope(fields);
    case "ping":
      return PING;
    case "pong":
      return PONG;
    case "auth":
      return readAuth(fields);
    default:
      return UNKNOWN;
  }
};

/** The first part of a sid, to which bindings are made; null when it is no good for one. */
export const firstPart = (sid: string): string | null => {
  const dot = sid.indexOf(".");
  const length = dot === -1 ? sid.length : dot;
  return length >= 1 && length <= MAX_SID_PART_LENGTH ? sid.slice(0, length) : null;
};

const OPENING_BRACE = 0x7b;

/** The bytes of an agent's envelope with `agent_id` put in front; every other byte as it was. */
export const withAgentId = (frame: Uint8Array, agentId: string): Uint8Array => {
  const inside = frame.indexOf(OPENING_BRACE) + 1;
  const member = `"agent_id":"${agentId}",`;
  const whole = new Uint8Array(frame.length + member.length);
  whole.set(frame.subarray(0, inside), 0);
  for (let i = 0; i < member.length; i++) whole[inside + i] = member.charCodeAt(i);
  whole.set(frame.subarray(inside), inside + member.length);
  return whole;
};

const readEnvelope = (fields: Fields): Envelope => {
  const payload = own(fields, "payload");
  const sid = payloadSid(payload);
  const requestId = own(fields, "request_id");
  const agentId = own(fields, "agent_id");
  return {
    kind: "relay",
    sid,
    requestId: typeof requestId === "string" ? requestId : null,
    agentId: typeof agentId === "string" ? agentId : null,
    fault: envelopeFault(
      payload,
      own(fields, "signature"),
      agentId,
      sid === null ? requestId : undefined,
    ),
  };
};

/** `requestId` is undefined for a packet too: a packet is never refused for its request_id. */
const envelopeFault = (
  payload: unknown,
  signature: unknown,
  agentId: unknown,
  requestId: unknown,
): string | null => {
  if (typeof payload !== "string" && !isObject(payload)) {
    return "payload must be a string";
  }
  if (signature !== undefined && typeof signature !== "string") {
    return "signature must be a string";
  }
  if (agentId !== undefined && typeof agentId !== "string") {
    return "agent_id must be a string";
  }
  if (requestId !== undefined && !isRequestId(requestId)) {
    return `request_id must be a string of 1 to ${MAX_REQUEST_ID_LENGTH} characters`;
  }
  return null;
};

const readAuth = (fields: Fields): AuthMessage => {
  const apiToken = own(fields, "api_token");
  const sessionToken = own(fields, "session_token");
  const clientType = own(fields, "client_type");
  const agentId = own(fields, "agent_id");
  const presence = own(fields, "presence");
  if ((apiToken === undefined) === (sessionToken === undefined)) {
    return badAuth("auth needs exactly one of api_token and session_token");
  }
  if (typeof (apiToken ?? sessionToken) !== "string") {
    return badAuth("the token must be a string");
  }
  if (clientType !== "client" && clientType !== "agent" && clientType !== "firmware") {
    return badAuth("client_type must be client, agent or firmware");
  }
  if (clientType !== "client" && typeof agentId !== "string") {
    return badAuth("an agent's auth needs its agent_id");
  }
  if (presence !== undefined && typeof presence !== "boolean") {
    return badAuth("presence must be true or false");
  }
  const runtime = own(fields, "runtime");
  const firmwareVersion = own(fields, "firmware_version");
  if (!isReport(runtime) || !isReport(firmwareVersion)) {
    return badAuth(
      `runtime and firmware_version must have 1 to ${MAX_REPORT_LENGTH} printable ASCII characters`,
    );
  }
  const credentials: Credentials = {
    clientType,
    presence: presence === true,
    report: { runtime: runtime ?? null, firmwareVersion: firmwareVersion ?? null },
  };
  if (typeof apiToken === "string") credentials.apiToken = apiToken;
  if (typeof sessionToken === "string") credentials.sessionToken = sessionToken;
  if (typeof agentId === "string") credentials.agentId = agentId;
  return { kind: "auth", credentials, fault: "" };
};

const isReport = (value: unknown): value is string | undefined =>
  value === undefined ||
  (typeof value === "string" && value.length <= MAX_REPORT_LENGTH && /^[ -~]+$/.test(value));

const badAuth = (fault: string): AuthMessage => ({ kind: "auth", credentials: null, fault });

const payloadSid = (payload: unknown): string | null => {
  const fields = typeof payload === "string" ? parseObject(payload) : payload;
  return isObject(fields) && typeof own(fields, "type") !== "string" ? packetSid(fields) : null;
};

const packetSid = (fields: Fields): string | null => {
  const sid = own(fields, "sid");
  return typeof sid === "string" &&
    typeof own(fields, "v") === "string" &&
    typeof own(fields, "p") === "string" &&
    Number.isInteger(own(fields, "seq"))
    ? sid
    : null;
};

const parseObject = (text: string): Fields | null => {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : null;
  } catch {
    return null;
  }
};

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isRequestId = (value: unknown): boolean =>
  typeof value === "string" && value.length >= 1 && value.length <= MAX_REQUEST_ID_LENGTH;

const own = (fields: Fields, name: string): unknown =>
  Object.hasOwn(fields, name) ? fields[name] : undefined;

// ---- writing

export const PING_TEXT = '{"type":"ping"}';
export const PONG_TEXT = '{"type":"pong"}';

/** What an error is about, so that its reader can find the call it belongs to. */
export interface Subject {
  sid: string | null;
  requestId: string | null;
}

export const errorText = (
  code: ErrorCode,
  subject: Subject | null,
  detail: string | null,
  maxBytes: number,
): string => {
  const fields: Fields = { type: "error", error: detail ?? ERRORS[code].meaning, code };
  const plain = asciiJson(fields);
  if (typeof subject?.requestId === "string") fields.request_id = subject.requestId;
  if (typeof subject?.sid === "string") fields.sid = subject.sid;
  const text = asciiJson(fields);
  // A sid that fills a whole message cannot travel back inside one.
  return text.length > maxBytes ? plain : text;
};

export const restartingText = (reconnectInS: number): string =>
  asciiJson({
    type: "error",
    error: ERRORS.RESTARTING.meaning,
    code: "RESTARTING",
    reconnect_in: reconnectInS,
  });

export const authSuccessText = (
  sessionToken: string,
  expiresInS: number,
  maxRequests: number,
): string =>
  asciiJson({
    type: "auth_response",
    status: "authenticated",
    session_token: sessionToken,
    expires_in: expiresInS,
    max_requests: maxRequests,
  });

export const authFailedText = (
  error: string,
  code: AuthResponseCode,
  retryAfterS: number,
): string =>
  asciiJson({ type: "auth_response", status: "failed", error, code, retry_after: retryAfterS });

export const agentStatusText = (agentId: string, online: boolean, atMs: number): string =>
  asciiJson({
    type: "agent_status",
    agent_id: agentId,
    online,
    timestamp: new Date(atMs).toISOString(),
  });

const asciiJson = (fields: Fields): string =>
  JSON.stringify(fields).replace(
    /[\u007f-\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
