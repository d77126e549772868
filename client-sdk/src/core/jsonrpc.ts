/**
 * JSON-RPC 2.0 inside the packet (section 2, "Inside a packet"): a client's requests, and the
 * content of an agent's verified plaintext. No batches.
 */
import { TOO_LATE_CODE } from "@blindrelay/protocol";
import {
  asciiBytes,
  asciiJson,
  decodeJson,
  encodeJson,
  isObject,
  own,
  ownString,
} from "@blindrelay/protocol/crypto";
import { changedNumber, isUnheld } from "@blindrelay/protocol/numbers";
import { CallError, type RemoteError } from "../errors.ts";
import { isTooDeep } from "./levels.ts";

/** An agent's answer while the device behind it (on a serial port) is unavailable. */
const DEVICE_UNAVAILABLE = -32002;

/** How a call ended. */
export type Outcome =
  | { readonly ok: true; readonly result: unknown }
  | { readonly ok: false; readonly error: CallError };

/** An outcome that is an error. */
export const failed = (error: CallError): Outcome => ({ ok: false, error });

export type Said =
  | { readonly kind: "answer"; readonly id: number; readonly outcome: Outcome }
  | { readonly kind: "event"; readonly event: string; readonly data: unknown }
  /** An event with what JavaScript cannot hold or write. */
  | { readonly kind: "lost event"; readonly why: string }
  | { readonly kind: "unreadable" };

/**
 * The text of a request after its id, or the reason why there is none. Made once per call, because
 * an idempotent call may be sent again with another id.
 */
export const requestTail = (
  method: unknown,
  params: unknown,
):
  | { readonly ok: true; readonly tail: string }
  | { readonly ok: false; readonly error: string } => {
  if (typeof method !== "string" || method === "") {
    return { ok: false, error: "the method must be a non-empty string" };
  }
  const head = `,"method":${encodeJson(method)}`;
  if (params === undefined) return { ok: true, tail: `${head}}` };
  if (typeof params !== "object" || params === null) {
    return { ok: false, error: "params must be an object, an array, or absent (JSON-RPC 2.0)" };
  }
  let text: string | undefined;
  try {
    text = encodeJson(params);
  } catch (thrown) {
    const { message, cause } = thrown as Error;
    const reason = cause instanceof Error ? cause.message : message;
    return { ok: false, error: `params cannot be written as JSON: ${reason}` };
  }
  // A toJSON may return something other than an object.
  if (text === undefined || (text[0] !== "{" && text[0] !== "[")) {
    return { ok: false, error: "params must be an object or array in JSON too" };
  }
  return { ok: true, tail: `${head},"params":${text}}` };
};

/**
 * The plaintext of a request. `expires`: the milliseconds since the session opened, after which it
 * must not run; null: none.
 */
export const encodeRequest = (id: number, tail: string, expires: number | null): Uint8Array =>
  asciiBytes(
    `{"jsonrpc":"2.0","id":${id}${expires === null ? "" : `,"expires":${expires}`}${tail}`,
  );

/** `system.ping`, which every agent answers. */
export const PING_TAIL = ',"method":"system.ping"}';

/** The content of a verified plaintext. Never throws. */
export const readSaid = (plaintext: Uint8Array): Said => {
  const text = asciiJson(plaintext) ?? "";
  const message = decodeJson(text);
  if (!isObject(message) || own(message, "jsonrpc") !== "2.0") return { kind: "unreadable" };
  const event = ownString(message, "method");
  const id = own(message, "id");
  if (event !== undefined) {
    // An agent sends only notifications; a request from it cannot be answered.
    if (id !== undefined) return { kind: "unreadable" };
    const why = unheld(text);
    return why === null
      ? { kind: "event", event, data: own(message, "params") }
      : { kind: "lost event", why };
  }
  return typeof id === "number"
    ? { kind: "answer", id, outcome: readOutcome(message, text) }
    : { kind: "unreadable" };
};

/**
 * More than any device has use for: one could otherwise end whatever prints or stores its answers.
 */
const MAX_LEVELS = 500;

/** What a valid JSON text has that JavaScript cannot hold, or not write again; null: nothing. */
const unheld = (text: string): string | null => {
  if (isTooDeep(text, MAX_LEVELS)) return `more than ${MAX_LEVELS} levels, one in another`;
  // Devices whose programs are not JavaScript send integers of 64 bits.
  const number = changedNumber(text, isUnheld)?.token ?? null;
  return number === null
    ? null
    : `the number ${number.slice(0, 40)}, which JavaScript cannot hold: let the agent send it as a text`;
};

const readOutcome = (message: { readonly [key: string]: unknown }, text: string): Outcome => {
  const error = own(message, "error");
  const hasResult = Object.hasOwn(message, "result");
  if (hasResult && (error === undefined || error === null)) {
    const why = unheld(text);
    if (why === null) return { ok: true, result: message.result };
    const reason = `the call ran, but its result has ${why}`;
    return { ok: false, error: new CallError("BAD_ANSWER", reason) };
  }
  const remote =
    isObject(error) && !hasResult && !isTooDeep(text, MAX_LEVELS) ? readRemote(error) : null;
  if (remote === null) {
    const reason = "the agent's answer is not a JSON-RPC response";
    return { ok: false, error: new CallError("BAD_ANSWER", reason) };
  }
  const reason = `the agent answered with error ${remote.code}: ${remote.message}`;
  return {
    ok: false,
    error: new CallError("REMOTE", reason, { remote, retryable: isUnavailable(remote, false) }),
  };
};

/**
 * The device behind the agent is unavailable; repeating the call is safe if it was not sent on, or
 * may run twice.
 */
export const isUnavailable = (remote: RemoteError, idempotent: boolean): boolean =>
  remote.code === DEVICE_UNAVAILABLE &&
  isObject(remote.data) &&
  own(remote.data, "retryable") === true &&
  (idempotent || own(remote.data, "sent") === false);

/** The agent refused to run the call, because it came after its `expires`. */
export const isTooLate = (outcome: Outcome): boolean =>
  !outcome.ok && outcome.error.remote?.code === TOO_LATE_CODE;

const readRemote = (error: { readonly [key: string]: unknown }): RemoteError | null => {
  const code = own(error, "code");
  const message = ownString(error, "message");
  if (typeof code !== "number" || message === undefined) return null;
  return Object.hasOwn(error, "data") ? { code, message, data: error.data } : { code, message };
};
