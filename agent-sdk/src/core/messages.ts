/**
 * Messages on the agent's link (section 3): what came is read by own properties into one union,
 * what goes is written in the form in which the agent was addressed.
 *
 * [portable]
 */
import { encodeJson } from "@blindrelay/protocol/crypto";

/** How a packet came, and so how its answer goes. */
export interface Form {
  /** A `relay` envelope around it, or the bare packet. */
  readonly enveloped: boolean;
  /** The envelope's payload was the packet itself, not its text. */
  readonly asObject: boolean;
  /** Copied into every envelope that answers; null where there was none. */
  readonly requestId: string | null;
}

export const BARE: Form = { enveloped: false, asObject: false, requestId: null };

export type Message =
  | {
      readonly kind: "packet";
      /** The packet's own text, byte for byte. */
      readonly text: string;
      readonly form: Form;
      /** null: none; otherwise to be verified over `text`. */
      readonly signature: string | null;
    }
  | {
      readonly kind: "accepted";
      readonly sessionToken: string | null;
      /** Seconds. */
      readonly expiresIn: number;
    }
  | {
      readonly kind: "failed";
      readonly code: string | null;
      readonly text: string;
      readonly retryAfter: number | null;
    }
  | {
      readonly kind: "error";
      readonly code: string;
      readonly text: string;
      readonly sid: string | null;
      readonly retryAfter: number | null;
      readonly reconnectIn: number | null;
    }
  | { readonly kind: "ping" }
  /** Nothing for an agent: a pong, a type of the future, a notice meant for clients. */
  | { readonly kind: "other" }
  | { readonly kind: "malformed" };

/** The first message on a link. `field`: which of the two tokens this is. */
export const writeAuth = (
  field: "api_token" | "session_token",
  token: string,
  agentId: string,
  runtime: string,
  firmwareVersion: string | null,
): string => {
  const firmware =
    firmwareVersion === null ? "" : `,"firmware_version":${encodeJson(firmwareVersion)}`;
  return `{"type":"auth","${field}":${encodeJson(token)},"client_type":"agent","agent_id":"${agentId}","runtime":${encodeJson(runtime)}${firmware}}`;
};

export const PONG = '{"type":"pong"}';

/** A packet's text (ASCII JSON) in the form in which its call came. */
export const writePacket = (packet: string, form: Form, agentId: string): string => {
  if (!form.enveloped) return packet;
  const payload = form.asObject ? packet : encodeJson(packet);
  const requestId = form.requestId === null ? "" : `,"request_id":${encodeJson(form.requestId)}`;
  return `{"type":"relay","payload":${payload},"agent_id":"${agentId}"${requestId}}`;
};
