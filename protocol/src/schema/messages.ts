/** Every message of a link and its senders (section 3), in one table, so that none is forgotten. */
import type { TSchema } from "typebox";
import { Auth, AuthFailure, AuthSuccess } from "./auth.ts";
import { PacketMessage } from "./packet.ts";
import { AgentStatus, ErrorMessage, Ping, Pong, RelayEnvelope } from "./relay.ts";

export interface MessageEntry {
  readonly schema: TSchema;
  /** Who may send it: a peer (client or agent), the relay, or both. */
  readonly from: "peer" | "relay" | "both";
  readonly summary: string;
}

export const MESSAGES = {
  auth: {
    schema: Auth,
    from: "peer",
    summary: "Identifies the peer; the first message of a link.",
  },
  authSuccess: { schema: AuthSuccess, from: "relay", summary: "The link is authenticated." },
  authFailure: {
    schema: AuthFailure,
    from: "relay",
    summary: "Authentication failed; the peer may try again within the 30 seconds.",
  },
  relay: {
    schema: RelayEnvelope,
    from: "both",
    summary: "A payload for an agent, or from one, in an envelope; forwarded unread.",
  },
  packet: {
    schema: PacketMessage,
    from: "both",
    summary: "A sealed packet without an envelope, routed by its sid alone.",
  },
  agentStatus: {
    schema: AgentStatus,
    from: "relay",
    summary:
      "An agent of the client's account connected or disconnected; the relay's unproven claim.",
  },
  ping: { schema: Ping, from: "both", summary: "Are you there? The relay asks every 30 seconds." },
  pong: { schema: Pong, from: "both", summary: "The answer to a ping." },
  error: {
    schema: ErrorMessage,
    from: "relay",
    summary: "What went wrong, and with which message; a close may follow.",
  },
} as const satisfies Record<string, MessageEntry>;
