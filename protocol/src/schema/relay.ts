/** All messages with a `type` on a link after `auth` (section 3). */
import { type Static, Type } from "typebox";
import { ERRORS } from "../errors.ts";
import { AGENT_ID_PATTERN, MAX_REQUEST_ID_LENGTH } from "../spec.ts";
import { encodeAgentStatus } from "../wire/agent-status.ts";
import { encodeEnvelope } from "../wire/envelope.ts";
import { encodeError } from "../wire/error.ts";
import {
  FIELD_AGENT_ID,
  FIELD_CODE,
  FIELD_ERROR,
  FIELD_ONLINE,
  FIELD_PAYLOAD,
  FIELD_RECONNECT_IN,
  FIELD_REQUEST_ID,
  FIELD_SID,
  FIELD_SIGNATURE,
  FIELD_TIMESTAMP,
  FIELD_TYPE,
  TYPE_AGENT_STATUS,
  TYPE_ERROR,
  TYPE_PING,
  TYPE_PONG,
  TYPE_RELAY,
} from "../wire/names.ts";
import { encodePacket } from "../wire/packet.ts";
import { PING_TEXT, PONG_TEXT } from "../wire/ping.ts";
import { example } from "./examples.ts";

const SID = "EBESExQVFhcYGRobHB0eHw";
const OPENING = encodePacket("1", SID, 0, "lUisHPq0GN2vzvWpIog3uw");
const REQUEST_ID = "q3Jm0Zt1xk2Wb7Yd";

const RequestId = Type.String({ minLength: 1, maxLength: MAX_REQUEST_ID_LENGTH });

/** Client to agent through the relay, and back. The bytes of `payload` are never changed. */
export const RelayEnvelope = Type.Object(
  {
    [FIELD_TYPE]: Type.Literal(TYPE_RELAY),
    [FIELD_PAYLOAD]: Type.String({
      description: "A packet as JSON text; anything else is not bound.",
    }),
    [FIELD_SIGNATURE]: Type.Optional(
      Type.String({ description: "base64url HMAC-SHA256 of payload; the relay cannot check it." }),
    ),
    [FIELD_AGENT_ID]: Type.Optional(
      Type.String({ pattern: AGENT_ID_PATTERN, description: "Clients: always." }),
    ),
    [FIELD_REQUEST_ID]: Type.Optional(RequestId),
  },
  {
    $id: "RelayEnvelope",
    examples: [example(encodeEnvelope(OPENING, "pump-7", REQUEST_ID))],
  },
);
export type RelayEnvelope = Static<typeof RelayEnvelope>;

/** Relay to client: the relay's unproven claim that an agent connected or disconnected. */
export const AgentStatus = Type.Object(
  {
    [FIELD_TYPE]: Type.Literal(TYPE_AGENT_STATUS),
    [FIELD_AGENT_ID]: Type.String({ pattern: AGENT_ID_PATTERN }),
    [FIELD_ONLINE]: Type.Boolean(),
    [FIELD_TIMESTAMP]: Type.String({
      format: "date-time",
      description: "When it connected or disconnected.",
    }),
  },
  {
    $id: "AgentStatus",
    examples: [example(encodeAgentStatus("pump-7", true, "2026-11-21T09:41:07.250Z"))],
  },
);
export type AgentStatus = Static<typeof AgentStatus>;

/** Either direction. The relay pings every 30 s; only a `pong` answers. */
export const Ping = Type.Object(
  { [FIELD_TYPE]: Type.Literal(TYPE_PING) },
  { $id: "Ping", examples: [example(PING_TEXT)] },
);
export type Ping = Static<typeof Ping>;
export const Pong = Type.Object(
  { [FIELD_TYPE]: Type.Literal(TYPE_PONG) },
  { $id: "Pong", examples: [example(PONG_TEXT)] },
);
export type Pong = Static<typeof Pong>;

/** Relay to peer. */
export const ErrorMessage = Type.Object(
  {
    [FIELD_TYPE]: Type.Literal(TYPE_ERROR),
    [FIELD_ERROR]: Type.String({ description: "For people." }),
    [FIELD_CODE]: Type.Union(Object.keys(ERRORS).map((code) => Type.Literal(code))),
    [FIELD_REQUEST_ID]: Type.Optional(RequestId),
    [FIELD_SID]: Type.Optional(
      Type.String({ description: "The full sid, if a packet is at fault." }),
    ),
    [FIELD_RECONNECT_IN]: Type.Optional(
      Type.Number({ minimum: 0, description: "With RESTARTING: seconds to wait." }),
    ),
  },
  {
    $id: "Error",
    examples: [
      example(
        encodeError("AGENT_OFFLINE", ERRORS.AGENT_OFFLINE.meaning, {
          sid: SID,
          requestId: REQUEST_ID,
        }),
      ),
    ],
  },
);
export type ErrorMessage = Omit<Static<typeof ErrorMessage>, typeof FIELD_CODE> & {
  [FIELD_CODE]: import("../errors.ts").ErrorCode;
};
