/** Everything typed that is said on a link after `auth` (section 3). */
import { type Static, Type } from "typebox";
import { ERRORS } from "../errors.ts";
import { AGENT_ID_PATTERN, MAX_REQUEST_ID_LENGTH } from "../spec.ts";

const RequestId = Type.String({ minLength: 1, maxLength: MAX_REQUEST_ID_LENGTH });

/** Client to agent through the relay, and back. The bytes of `payload` are never changed. */
export const RelayEnvelope = Type.Object(
  {
    type: Type.Literal("relay"),
    payload: Type.String({ description: "A packet as JSON text; anything else is not bound." }),
    signature: Type.Optional(
      Type.String({ description: "base64url HMAC-SHA256 of payload; the relay cannot check it." }),
    ),
    agent_id: Type.Optional(
      Type.String({ pattern: AGENT_ID_PATTERN, description: "Clients: always." }),
    ),
    request_id: Type.Optional(RequestId),
  },
  {
    $id: "RelayEnvelope",
    examples: [
      {
        type: "relay",
        agent_id: "pump-7",
        request_id: "q3Jm0Zt1xk2Wb7Yd",
        payload: '{"v":"1","sid":"EBESExQVFhcYGRobHB0eHw","seq":0,"p":"lUisHPq0GN2vzvWpIog3uw"}',
      },
    ],
  },
);
export type RelayEnvelope = Static<typeof RelayEnvelope>;

/** Relay to client: the relay's unproven word that an agent came or went. */
export const AgentStatus = Type.Object(
  {
    type: Type.Literal("agent_status"),
    agent_id: Type.String({ pattern: AGENT_ID_PATTERN }),
    online: Type.Boolean(),
    timestamp: Type.String({ format: "date-time", description: "When it came or went." }),
  },
  {
    $id: "AgentStatus",
    examples: [
      {
        type: "agent_status",
        agent_id: "pump-7",
        online: true,
        timestamp: "2026-11-21T09:41:07.250Z",
      },
    ],
  },
);
export type AgentStatus = Static<typeof AgentStatus>;

/** Either direction. The relay pings every 30 s; only a `pong` answers. */
export const Ping = Type.Object(
  { type: Type.Literal("ping") },
  { $id: "Ping", examples: [{ type: "ping" }] },
);
export type Ping = Static<typeof Ping>;
export const Pong = Type.Object(
  { type: Type.Literal("pong") },
  { $id: "Pong", examples: [{ type: "pong" }] },
);
export type Pong = Static<typeof Pong>;

/** Relay to peer. */
export const ErrorMessage = Type.Object(
  {
    type: Type.Literal("error"),
    error: Type.String({ description: "For people." }),
    code: Type.Union(Object.keys(ERRORS).map((code) => Type.Literal(code))),
    request_id: Type.Optional(RequestId),
    sid: Type.Optional(Type.String({ description: "The full sid, where a packet is at fault." })),
    reconnect_in: Type.Optional(
      Type.Number({ minimum: 0, description: "With RESTARTING: seconds to wait." }),
    ),
  },
  {
    $id: "Error",
    examples: [
      {
        type: "error",
        error: "The agent has no connection to the relay now.",
        code: "AGENT_OFFLINE",
        request_id: "q3Jm0Zt1xk2Wb7Yd",
        sid: "EBESExQVFhcYGRobHB0eHw",
      },
    ],
  },
);
export type ErrorMessage = Omit<Static<typeof ErrorMessage>, "code"> & {
  code: import("../errors.ts").ErrorCode;
};
