/**
 * `auth_response` (section 3): the relay's answer to an `auth`.
 *
 * [portable]
 */
import { encodeJson, own, ownString } from "../encoding/json.ts";
import {
  FIELD_CODE,
  FIELD_ERROR,
  FIELD_EXPIRES_IN,
  FIELD_MAX_REQUESTS,
  FIELD_RENEWED,
  FIELD_RETRY_AFTER,
  FIELD_SESSION_TOKEN,
  FIELD_STATUS,
  FIELD_TYPE,
  STATUS_AUTHENTICATED,
  STATUS_FAILED,
  TYPE_AUTH_RESPONSE,
} from "./names.ts";
import { ownSeconds } from "./seconds.ts";

export interface Authenticated {
  readonly kind: "authenticated";
  readonly sessionToken: string | null;
  /** Seconds; null if the relay gave none. */
  readonly expiresIn: number | null;
}

/** The same for a client. */
export interface ClientAuthenticated extends Authenticated {
  /** The link may take over the bindings of the session token that its `auth` renews. */
  readonly renewed: boolean;
}

export interface AuthFailed {
  readonly kind: "authFailed";
  readonly code: string | null;
  /** For people. */
  readonly error: string;
  /** Seconds; null if the relay gave none. */
  readonly retryAfter: number | null;
}

/** `expiresIn`: seconds. */
export const encodeAuthenticated = (
  sessionToken: string,
  expiresIn: number,
  maxRequests: number,
  renewed?: boolean,
): string =>
  `{"${FIELD_TYPE}":"${TYPE_AUTH_RESPONSE}","${FIELD_STATUS}":"${STATUS_AUTHENTICATED}","${FIELD_SESSION_TOKEN}":${encodeJson(sessionToken)},"${FIELD_EXPIRES_IN}":${expiresIn},"${FIELD_MAX_REQUESTS}":${maxRequests}${renewed === true ? `,"${FIELD_RENEWED}":true` : ""}}`;

/** `retryAfter`: seconds. */
export const encodeAuthFailed = (error: string, code: string, retryAfter: number): string =>
  `{"${FIELD_TYPE}":"${TYPE_AUTH_RESPONSE}","${FIELD_STATUS}":"${STATUS_FAILED}","${FIELD_ERROR}":${encodeJson(error)},"${FIELD_CODE}":"${code}","${FIELD_RETRY_AFTER}":${retryAfter}}`;

/** Reads the fields of an `auth_response`: any status but success counts as a failure. */
export const decodeAuthResponse = (fields: object): Authenticated | AuthFailed => {
  if (own(fields, FIELD_STATUS) === STATUS_AUTHENTICATED) {
    const token = ownString(fields, FIELD_SESSION_TOKEN);
    return {
      kind: "authenticated",
      sessionToken: token === undefined ? null : token,
      expiresIn: ownSeconds(fields, FIELD_EXPIRES_IN),
    };
  }
  const code = ownString(fields, FIELD_CODE);
  const error = ownString(fields, FIELD_ERROR);
  return {
    kind: "authFailed",
    code: code === undefined ? null : code,
    error: error === undefined ? "" : error,
    retryAfter: ownSeconds(fields, FIELD_RETRY_AFTER),
  };
};

/** The same for a client. */
export const decodeClientAuthResponse = (fields: object): ClientAuthenticated | AuthFailed => {
  const message = decodeAuthResponse(fields);
  if (message.kind !== "authenticated") return message;
  return {
    kind: "authenticated",
    sessionToken: message.sessionToken,
    expiresIn: message.expiresIn,
    renewed: own(fields, FIELD_RENEWED) === true,
  };
};
