/** `auth` and its answer (section 3). What a peer says first, and what it gets. */
import { type Static, Type } from "typebox";
import { AGENT_ID_PATTERN, MAX_REPORT_LENGTH } from "../spec.ts";

export const ClientType = Type.Union(
  [Type.Literal("client"), Type.Literal("agent"), Type.Literal("firmware")],
  { description: "`agent` and `firmware` mean the same: the firmware side." },
);
export type ClientType = Static<typeof ClientType>;

/** What an agent says of itself in the open, for REST to show. */
const report = (description: string) =>
  Type.String({ minLength: 1, maxLength: MAX_REPORT_LENGTH, pattern: "^[ -~]*$", description });

/** Peer to relay, within 30 s of the upgrade. Exactly one of the two tokens. */
export const Auth = Type.Object(
  {
    type: Type.Literal("auth"),
    api_token: Type.Optional(
      Type.String({ maxLength: 256, description: "An account token, or an agent relay token." }),
    ),
    session_token: Type.Optional(Type.String({ maxLength: 256 })),
    client_type: ClientType,
    agent_id: Type.Optional(
      Type.String({ pattern: AGENT_ID_PATTERN, description: "Agents and firmware: always." }),
    ),
    runtime: Type.Optional(report("What the agent runs on; its first word names the runtime.")),
    firmware_version: Type.Optional(report("Of the firmware that has booted.")),
    presence: Type.Optional(
      Type.Boolean({ description: "Clients: one `agent_status` per online agent, after success." }),
    ),
  },
  {
    $id: "Auth",
    examples: [
      {
        type: "auth",
        api_token: "agt_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf3c6lNx",
        client_type: "firmware",
        agent_id: "pump-7",
        runtime: "espruino 2v25 ESP32",
        firmware_version: "1.4.0",
      },
      {
        type: "auth",
        session_token: "sess_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1eADN2",
        client_type: "client",
        presence: true,
      },
    ],
  },
);
export type Auth = Static<typeof Auth>;

export const AuthSuccess = Type.Object(
  {
    type: Type.Literal("auth_response"),
    status: Type.Literal("authenticated"),
    session_token: Type.String({
      description: "New after api_token; the same after session_token.",
    }),
    expires_in: Type.Integer({
      minimum: 0,
      description: "Seconds left, rounded up: 86400 when new.",
    }),
    max_requests: Type.Integer({
      minimum: 1,
      description: "Requests that a client's session token is good for; agents are not counted.",
    }),
  },
  {
    $id: "AuthSuccess",
    examples: [
      {
        type: "auth_response",
        status: "authenticated",
        session_token: "sess_003aUlTJC7tjlCTQj2uNU3MFagCXG9LRKRcwGkBIDlf1eADN2",
        expires_in: 86400,
        max_requests: 10000,
      },
    ],
  },
);
export type AuthSuccess = Static<typeof AuthSuccess>;

export const AuthFailure = Type.Object(
  {
    type: Type.Literal("auth_response"),
    status: Type.Literal("failed"),
    error: Type.String({
      description: "For people. Exactly `Invalid token` for a mere wrong one.",
    }),
    code: Type.Union([
      Type.Literal("INVALID_TOKEN"),
      Type.Literal("WRONG_TOKEN_KIND"),
      Type.Literal("LOCKED_OUT"),
      Type.Literal("SESSION_EXPIRED"),
      Type.Literal("LIMIT_EXCEEDED"),
      Type.Literal("TAKEOVER_LOOP"),
      Type.Literal("BAD_MESSAGE"),
      Type.Literal("UNAVAILABLE"),
    ]),
    retry_after: Type.Integer({ minimum: 0, description: "Seconds." }),
  },
  {
    $id: "AuthFailure",
    examples: [
      {
        type: "auth_response",
        status: "failed",
        error: "Too many failed authentications",
        code: "LOCKED_OUT",
        retry_after: 600,
      },
    ],
  },
);
export type AuthFailure = Static<typeof AuthFailure>;
export type AuthFailureCode = AuthFailure["code"];

/** Relay to peer. */
export const AuthResponse = Type.Union([AuthSuccess, AuthFailure], { $id: "AuthResponse" });
export type AuthResponse = Static<typeof AuthResponse>;
