/**
 * `error` (section 3): relay to peer, about one of the peer's messages or about the link.
 *
 * [portable]
 */
import { encodeJson, ownString } from "../encoding/json.ts";
import {
  FIELD_CODE,
  FIELD_ERROR,
  FIELD_RECONNECT_IN,
  FIELD_REQUEST_ID,
  FIELD_SID,
  FIELD_TYPE,
  TYPE_ERROR,
} from "./names.ts";
import { ownSeconds } from "./seconds.ts";

export interface RelayError {
  readonly kind: "error";
  readonly code: string;
  /** For people. */
  readonly error: string;
  /** The full sid of the packet concerned, or null. */
  readonly sid: string | null;
  /** Seconds, with RESTARTING; null if the relay gave none. */
  readonly reconnectIn: number | null;
}

/** What an error refers to, so that its reader can find the call. */
export interface Subject {
  readonly sid: string | null;
  readonly requestId: string | null;
}

const errorHead = (code: string, error: string): string =>
  `{"${FIELD_TYPE}":"${TYPE_ERROR}","${FIELD_ERROR}":${encodeJson(error)},"${FIELD_CODE}":"${code}"`;

export const encodeError = (code: string, error: string, subject: Subject | null): string => {
  const head = errorHead(code, error);
  if (subject === null) return `${head}}`;
  const requestId =
    subject.requestId === null ? "" : `,"${FIELD_REQUEST_ID}":${encodeJson(subject.requestId)}`;
  const sid = subject.sid === null ? "" : `,"${FIELD_SID}":${encodeJson(subject.sid)}`;
  return `${head}${requestId}${sid}}`;
};

/** RESTARTING: the relay shuts down; `reconnectIn`: seconds until this peer may reconnect. */
export const encodeRestarting = (error: string, reconnectIn: number): string =>
  `${errorHead("RESTARTING", error)},"${FIELD_RECONNECT_IN}":${reconnectIn}}`;

/** Reads the fields of an `error`; null if it has no code. */
export const decodeError = (fields: object): RelayError | null => {
  const code = ownString(fields, FIELD_CODE);
  if (code === undefined) return null;
  const error = ownString(fields, FIELD_ERROR);
  const sid = ownString(fields, FIELD_SID);
  return {
    kind: "error",
    code: code,
    error: error === undefined ? "" : error,
    sid: sid === undefined ? null : sid,
    reconnectIn: ownSeconds(fields, FIELD_RECONNECT_IN),
  };
};
