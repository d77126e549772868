/** `auth` and its answer (section 3): a peer's first message, and the response. */
import { type Static, Type } from "typebox";
import { AGENT_ID_PATTERN, MAX_REPORT_LENGTH } from "../spec.ts";
import { encodeAgentAuth, encodeClientAuth } from "../wire/auth.ts";
import { encodeAuthenticated, encodeAuthFailed } from "../wire/auth-response.ts";
import {
  FIELD_AGENT_ID,
  FIELD_API_TOKEN,
  FIELD_CLIENT_TYPE,
  FIELD_CODE,
  FIELD_ERROR,
  FIELD_EXPIRES_IN,
  FIELD_FIRMWARE_VERSION,
  FIELD_MAX_REQUESTS,
  FIELD_PRESENCE,
  FIELD_RENEWED,
  FIELD_RENEWS,
  FIELD_RETRY_AFTER,
  FIELD_RUNTIME,
  FIELD_SESSION_TOKEN,
  FIELD_STATUS,
  FIELD_TYPE,
  STATUS_AUTHENTICATED,
  STATUS_FAILED,
  TYPE_AUTH,
  TYPE_AUTH_RESPONSE,
} from "../wire/names.ts";
import { ACCOUNT_TOKEN, AGENT_TOKEN, example, SESSION_TOKEN } from "./examples.ts";
import { OneOf } from "./one-of.ts";

export const ClientType = OneOf(["client", "agent", "firmware"], {
  description: "`agent` and `firmware` mean the same: the firmware side.",
});
export type ClientType = Static<typeof ClientType>;

/** What an agent reports about itself in clear text, for REST to show. */
const report = (description: string) =>
  Type.String({ minLength: 1, maxLength: MAX_REPORT_LENGTH, pattern: "^[ -~]*$", description });

/** Peer to relay, within 30 s of the upgrade. Exactly one of the two tokens. */
export const Auth = Type.Object(
  {
    [FIELD_TYPE]: Type.Literal(TYPE_AUTH),
    [FIELD_API_TOKEN]: Type.Optional(
      Type.String({ maxLength: 256, description: "An account token, or an agent relay token." }),
    ),
    [FIELD_SESSION_TOKEN]: Type.Optional(Type.String({ maxLength: 256 })),
    [FIELD_CLIENT_TYPE]: ClientType,
    [FIELD_AGENT_ID]: Type.Optional(
      Type.String({ pattern: AGENT_ID_PATTERN, description: "Agents and firmware: always." }),
    ),
    [FIELD_RUNTIME]: Type.Optional(
      report("What the agent runs on; its first word names the runtime."),
    ),
    [FIELD_FIRMWARE_VERSION]: Type.Optional(report("Of the firmware that has booted.")),
    [FIELD_PRESENCE]: Type.Optional(
      Type.Boolean({ description: "Clients: one `agent_status` per online agent, after success." }),
    ),
    [FIELD_RENEWS]: Type.Optional(
      Type.String({
        maxLength: 256,
        description: "Clients: the session token of the link that this one replaces.",
      }),
    ),
  },
  {
    $id: "Auth",
    examples: [
      example(encodeAgentAuth(AGENT_TOKEN, false, "pump-7", "espruino 2v25 ESP32", "1.4.0")),
      example(encodeClientAuth(SESSION_TOKEN, true, true)),
      example(encodeClientAuth(ACCOUNT_TOKEN, false, false, SESSION_TOKEN)),
    ],
  },
);
export type Auth = Static<typeof Auth>;

export const AuthSuccess = Type.Object(
  {
    [FIELD_TYPE]: Type.Literal(TYPE_AUTH_RESPONSE),
    [FIELD_STATUS]: Type.Literal(STATUS_AUTHENTICATED),
    [FIELD_SESSION_TOKEN]: Type.String({
      description: "New after api_token; the same after session_token.",
    }),
    [FIELD_EXPIRES_IN]: Type.Integer({
      minimum: 0,
      description: "Seconds left, rounded up: 86400 when new.",
    }),
    [FIELD_MAX_REQUESTS]: Type.Integer({
      minimum: 1,
      description: "Requests per client session token; those of agents are not counted.",
    }),
    [FIELD_RENEWED]: Type.Optional(
      Type.Boolean({
        description: "True: this link may take over the bindings of the token that it `renews`.",
      }),
    ),
  },
  {
    $id: "AuthSuccess",
    examples: [example(encodeAuthenticated(SESSION_TOKEN, 86400, 10000))],
  },
);
export type AuthSuccess = Static<typeof AuthSuccess>;

export const AuthFailure = Type.Object(
  {
    [FIELD_TYPE]: Type.Literal(TYPE_AUTH_RESPONSE),
    [FIELD_STATUS]: Type.Literal(STATUS_FAILED),
    [FIELD_ERROR]: Type.String({
      description: "For people. Exactly `Invalid token` for an invalid token.",
    }),
    [FIELD_CODE]: OneOf([
      "INVALID_TOKEN",
      "WRONG_TOKEN_KIND",
      "LOCKED_OUT",
      "SESSION_EXPIRED",
      "RATE_LIMITED",
      "LIMIT_EXCEEDED",
      "TAKEOVER_LOOP",
      "BAD_MESSAGE",
      "UNAVAILABLE",
      "QUOTA_EXCEEDED",
    ]),
    [FIELD_RETRY_AFTER]: Type.Integer({ minimum: 0, description: "Seconds." }),
  },
  {
    $id: "AuthFailure",
    examples: [example(encodeAuthFailed("Too many failed authentications", "LOCKED_OUT", 600))],
  },
);
export type AuthFailure = Static<typeof AuthFailure>;
export type AuthFailureCode = AuthFailure["code"];

/** Relay to peer. */
export const AuthResponse = Type.Union([AuthSuccess, AuthFailure], { $id: "AuthResponse" });
export type AuthResponse = Static<typeof AuthResponse>;
