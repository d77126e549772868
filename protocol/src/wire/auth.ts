/**
 * `auth` (section 3): peer to relay, the first message on a link.
 *
 * [portable]
 */
import { encodeJson, own } from "../encoding/json.ts";
import { MAX_REPORT_LENGTH } from "../spec.ts";
import {
  FIELD_AGENT_ID,
  FIELD_API_TOKEN,
  FIELD_CLIENT_TYPE,
  FIELD_FIRMWARE_VERSION,
  FIELD_PRESENCE,
  FIELD_RENEWS,
  FIELD_RUNTIME,
  FIELD_SESSION_TOKEN,
  FIELD_TYPE,
  TYPE_AUTH,
} from "./names.ts";

/** `firmware` is a synonym of `agent`: both authenticate with an agent's relay token. */
export type ClientType = "client" | "agent" | "firmware";

/** What an agent reports about itself in clear text; null if it reports nothing. */
export interface AgentReport {
  readonly runtime: string | null;
  readonly firmwareVersion: string | null;
}

/** Exactly one of the two tokens is present. */
export interface Credentials {
  apiToken?: string;
  sessionToken?: string;
  clientType: ClientType;
  /** Agents always send it; from clients it has no meaning. */
  agentId?: string;
  /** Of a client: the session token whose bindings its link takes over. */
  renews?: string;
  presence: boolean;
  report: AgentReport;
}

export interface AuthMessage {
  readonly kind: "auth";
  /** Null if it is not a valid `auth`; `fault` then gives the reason. */
  readonly credentials: Credentials | null;
  readonly fault: string;
}

/**
 * For a client. `isSession`: the token is a session token. `renews`: the session token of the link
 * that this one replaces.
 */
export const encodeClientAuth = (
  token: string,
  isSession: boolean,
  presence: boolean,
  renews: string | null = null,
): string => {
  const replaced = renews === null ? "" : `,"${FIELD_RENEWS}":${encodeJson(renews)}`;
  const wanted = (presence ? `,"${FIELD_PRESENCE}":true` : "") + replaced;
  return `{"${FIELD_TYPE}":"${TYPE_AUTH}","${isSession ? FIELD_SESSION_TOKEN : FIELD_API_TOKEN}":${encodeJson(token)},"${FIELD_CLIENT_TYPE}":"client"${wanted}}`;
};

/** For an agent. `agentId` is valid. */
export const encodeAgentAuth = (
  token: string,
  isSession: boolean,
  agentId: string,
  runtime: string,
  firmwareVersion: string | null,
): string => {
  const firmware =
    firmwareVersion === null ? "" : `,"${FIELD_FIRMWARE_VERSION}":${encodeJson(firmwareVersion)}`;
  return `{"${FIELD_TYPE}":"${TYPE_AUTH}","${isSession ? FIELD_SESSION_TOKEN : FIELD_API_TOKEN}":${encodeJson(token)},"${FIELD_CLIENT_TYPE}":"agent","${FIELD_AGENT_ID}":"${agentId}","${FIELD_RUNTIME}":${encodeJson(runtime)}${firmware}}`;
};

/** Whether an agent may report this text: 1 to 64 printable ASCII characters. */
export const isReport = (value: unknown): value is string =>
  typeof value === "string" && value.length <= MAX_REPORT_LENGTH && /^[ -~]+$/.test(value);

const authFault = (fault: string): AuthMessage => ({
  kind: "auth",
  credentials: null,
  fault: fault,
});

/** Reads the fields of an `auth`. */
export const decodeAuth = (fields: object): AuthMessage => {
  const apiToken = own(fields, FIELD_API_TOKEN);
  const sessionToken = own(fields, FIELD_SESSION_TOKEN);
  const clientType = own(fields, FIELD_CLIENT_TYPE);
  const agentId = own(fields, FIELD_AGENT_ID);
  const presence = own(fields, FIELD_PRESENCE);
  if ((apiToken === undefined) === (sessionToken === undefined)) {
    return authFault(`auth needs exactly one of ${FIELD_API_TOKEN} and ${FIELD_SESSION_TOKEN}`);
  }
  if (typeof (apiToken === undefined ? sessionToken : apiToken) !== "string") {
    return authFault("the token must be a string");
  }
  if (clientType !== "client" && clientType !== "agent" && clientType !== "firmware") {
    return authFault(`${FIELD_CLIENT_TYPE} must be client, agent or firmware`);
  }
  if (clientType !== "client" && typeof agentId !== "string") {
    return authFault(`an agent's auth needs its ${FIELD_AGENT_ID}`);
  }
  const renews = own(fields, FIELD_RENEWS);
  if (renews !== undefined && typeof renews !== "string") {
    return authFault(`${FIELD_RENEWS} must be a session token`);
  }
  if (presence !== undefined && typeof presence !== "boolean") {
    return authFault(`${FIELD_PRESENCE} must be true or false`);
  }
  const runtime = own(fields, FIELD_RUNTIME);
  const firmwareVersion = own(fields, FIELD_FIRMWARE_VERSION);
  if (
    (runtime !== undefined && !isReport(runtime)) ||
    (firmwareVersion !== undefined && !isReport(firmwareVersion))
  ) {
    return authFault(
      `${FIELD_RUNTIME} and ${FIELD_FIRMWARE_VERSION} must have 1 to ${MAX_REPORT_LENGTH} printable ASCII characters`,
    );
  }
  const credentials: Credentials = {
    clientType: clientType,
    presence: presence === true,
    report: {
      runtime: runtime === undefined ? null : runtime,
      firmwareVersion: firmwareVersion === undefined ? null : firmwareVersion,
    },
  };
  if (typeof apiToken === "string") credentials.apiToken = apiToken;
  if (typeof sessionToken === "string") credentials.sessionToken = sessionToken;
  if (typeof renews === "string") credentials.renews = renews;
  if (typeof agentId === "string") credentials.agentId = agentId;
  return { kind: "auth", credentials: credentials, fault: "" };
};
