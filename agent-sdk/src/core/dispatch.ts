/**
 * JSON-RPC 2.0 on the agent's side (section 2, "Inside a packet"): a verified plaintext goes in,
 * the plaintext of the answer comes out, synchronously or when the handler's promise settles.
 *
 *   not JSON, no object, no `"jsonrpc": "2.0"`, a batch   counted, not answered
 *   a response                                            counted, not answered (agents make no
 *                                                         calls)
 *   `method` no string, `params` no object or array,
 *   `id` no string, number or null, or over 2^53 - 1      -32600, `id` null if it is unknown
 *   unknown method                                        -32601, a notification: nothing
 *   the handler throws, rejects, or returns what
 *   JSON cannot express or one packet cannot contain      -32000 with the reason
 *   longer or deeper than the device has room for         -32000 with the measure; not read further
 *   too many calls unsettled                              -32001; the handler was not called
 *   `expires` no integer from 0 to 2^53 - 1               -32600, a notification: nothing
 *   `expires` over                                        -32003; the handler was not called
 *   the thrown error has an integer `code` outside of
 *   -32768 to -32000                                      that code, its message, its `data` if
 *                                                         JSON can express it and it fits
 *   the thrown error has `unavailable: true`              -32002, data {retryable: true, sent}: the
 *                                                         device behind is unavailable; `sent`: it
 *                                                         may have received the command
 *
 * [portable]
 */

import { EXPIRES_CLOCK_MS, EXPIRES_CLOCK_SHARE, TOO_LATE_CODE } from "@blindrelay/protocol";
import {
  asciiBytes,
  asciiText,
  encodeJson,
  isObject,
  own,
  readJson,
} from "@blindrelay/protocol/crypto";
import { MAX_CALLS_IN_FLIGHT } from "./defaults.ts";

const INVALID_REQUEST = -32600;
const METHOD_NOT_FOUND = -32601;
const HANDLER_FAILED = -32000;
const BUSY = -32001;
const DEVICE_UNAVAILABLE = -32002;
/**
 * The start of a request as written by our clients; its id is then found without reading the rest.
 */
const CALL_HEAD = '{"jsonrpc":"2.0","id":';
/** This many bytes contain that head and an id that a number can repeat. */
const ID_WITHIN = 39;
/** The lowest code that JSON-RPC reserves; HANDLER_FAILED is the highest. */
const RESERVED_FROM = -32768;
const MAX_INTEGER = 9007199254740991; // 2^53 - 1

/** Methods that the SDK answers itself or reserves for streams; `rpc.` belongs to JSON-RPC. */
const isReserved = (method: string): boolean => {
  for (const prefix of ["system.", "stream.", "rpc."]) {
    if (method.substring(0, prefix.length) === prefix) return true;
  }
  return false;
};

/** What a handler is told about its call. */
export interface CallContext {
  /** The session of the call; another session may be another client, or a later one of the same. */
  readonly sid: string;
  /** True for a notification: the caller does not wait for a result. */
  readonly notification: boolean;
}

/**
 * A device program's handler for a method. Returns a JSON value (undefined counts as null), or a
 * promise of one. `params`: as sent, an object, an array or undefined; the caller is verified, but
 * what it sends is not. A thrown error reaches the caller as -32000 with its message, or with its
 * own integer `code` outside of -32768 to -32000, and its `data`.
 */
// biome-ignore lint/suspicious/noExplicitAny: params are whatever the caller sent; a program narrows them.
export type Handler = (params: any, context: CallContext) => unknown;

/** Sends the plaintext of an answer, or drops it if the session is gone. Must not throw. */
export type Answer = (plaintext: Uint8Array) => void;

/** Called for every failed handler, with the value that it threw. */
type Failed = (method: string, reason: string, thrown: unknown) => void;

/** Why a plaintext must not be parsed on this device; undefined if it may. */
export type Refuses = (plaintext: Uint8Array) => string | undefined;

interface DispatchCounters {
  /** Requests and notifications that reached a handler. */
  calls: number;
  /** Verified plaintexts that are not JSON-RPC requests. */
  notRequests: number;
  /** Error answers, for any reason. */
  errors: number;
}

interface Call {
  readonly sid: string;
  /** As JSON text; null for a notification. */
  readonly id: string | null;
  readonly method: string;
  readonly answer: Answer;
  open: boolean;
}

/** The message of any thrown value. */
export const reasonOf = (thrown: unknown): string => {
  if (typeof thrown === "string") return thrown;
  if (typeof thrown === "object" && thrown !== null) {
    const message = (thrown as { message?: unknown }).message;
    if (typeof message === "string" && message !== "") return message;
  }
  return "the handler failed";
};

/** What a handler may throw to send more than a message. */
interface ThrownError {
  readonly unavailable?: unknown;
  readonly sent?: unknown;
  readonly code?: unknown;
  readonly data?: unknown;
}

/** An integer that every runtime reads back. */
const isInteger = (value: unknown): value is number =>
  typeof value === "number" && value % 1 === 0 && Math.abs(value) <= MAX_INTEGER;

/** One outside of the range that JSON-RPC reserves. */
const isProgramCode = (code: unknown): code is number =>
  isInteger(code) && (code < RESERVED_FROM || code > HANDLER_FAILED);

/**
 * Whether a call that must not run later than `expires` milliseconds after the client's first
 * answer would do so now. The agent knows only when it stored the session, and clocks differ.
 */
const isLate = (expires: number, ageMs: number): boolean =>
  ageMs - Math.min(ageMs * EXPIRES_CLOCK_SHARE, EXPIRES_CLOCK_MS) > expires;

/** The member `data` of an error, with a comma before it; "" if there is none. */
const dataMember = (data: unknown): string => {
  if (data === undefined) return "";
  try {
    const text = encodeJson(data);
    return text === undefined ? "" : `,"data":${text}`;
  } catch {
    return ""; // a circular reference
  }
};

const isThenable = (value: unknown): value is Promise<unknown> =>
  typeof value === "object" &&
  value !== null &&
  typeof (value as { then?: unknown }).then === "function";

export class Dispatcher {
  declare private readonly maxPlaintext: number;
  declare private readonly failed: Failed;
  declare readonly counters: DispatchCounters;
  declare private names: string[];
  declare private handlers: Handler[];
  declare private calls: Call[];
  /** Handlers begin only after the caller of `receive` has returned; see AgentCoreOptions. */
  declare freshStack: boolean;
  /** Why a call must not be parsed; see AgentCoreOptions. */
  declare refuses: Refuses | null;

  /** `maxPlaintext`: bytes. `failed` is called for every handler that threw. */
  constructor(maxPlaintext: number, failed: Failed) {
    this.names = [];
    this.handlers = [];
    this.calls = [];
    this.freshStack = false;
    this.refuses = null;
    this.maxPlaintext = maxPlaintext;
    this.failed = failed;
    this.counters = { calls: 0, notRequests: 0, errors: 0 };
  }

  /** Registers a program's method. Throws for a name that is empty, reserved or taken. */
  handle(method: string, handler: Handler): void {
    if (typeof method !== "string" || method === "") throw new Error("a method needs a name");
    if (typeof handler !== "function") throw new Error(`"${method}" needs a function`);
    if (isReserved(method)) {
      throw new Error(`"${method}" has a reserved prefix`);
    }
    this.add(method, handler);
  }

  /** The same for the SDK's own methods. */
  add(method: string, handler: Handler): void {
    if (this.names.indexOf(method) >= 0) throw new Error(`"${method}" has a handler already`);
    // Not `push`, which allocates more than most devices can spare.
    this.names = this.names.concat([method]);
    this.handlers = this.handlers.concat([handler]);
  }

  /** Names of all methods, in the order of registration. */
  methods(): string[] {
    return this.names.concat([]);
  }

  /**
   * Handles one verified plaintext of the session `sid`, stored `ageMs` ago. Never throws, whatever
   * handlers do.
   */
  receive(plaintext: Uint8Array, sid: string, ageMs: number, answer: Answer): void {
    const tooMuch =
      plaintext.length > this.maxPlaintext
        ? `the call has ${plaintext.length} bytes, at most ${this.maxPlaintext} fit`
        : this.refuses === null
          ? undefined
          : this.refuses(plaintext);
    if (tooMuch !== undefined) {
      this.refuseUnread(plaintext, tooMuch, answer);
      return;
    }
    const value = readJson(plaintext);
    if (!isObject(value) || own(value, "jsonrpc") !== "2.0") {
      this.counters.notRequests++;
      return;
    }
    const method = own(value, "method");
    if (
      method === undefined &&
      (own(value, "result") !== undefined || own(value, "error") !== undefined)
    ) {
      this.counters.notRequests++;
      return;
    }
    const id = own(value, "id");
    const hasId = id !== undefined;
    // A larger number, such as nanoseconds since 1970, may have been read as another one.
    const goodId =
      id === null ||
      typeof id === "string" ||
      (typeof id === "number" && Math.abs(id) <= MAX_INTEGER);
    const params = own(value, "params");
    const goodParams = params === undefined || (typeof params === "object" && params !== null);
    const expires = own(value, "expires");
    const goodExpires = expires === undefined || (isInteger(expires) && expires >= 0);
    const call: Call = {
      sid: sid,
      id: hasId ? (goodId ? (encodeJson(id) as string) : "null") : null,
      method: typeof method === "string" ? method : "",
      answer: answer,
      open: true,
    };
    if (typeof method !== "string" || !goodParams || (hasId && !(goodId && goodExpires))) {
      this.refuse(call, INVALID_REQUEST, "invalid request", "");
      return;
    }
    const index = this.names.indexOf(method);
    if (index < 0) {
      // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
      if (hasId) this.refuse(call, METHOD_NOT_FOUND, 'unknown method "' + method + '"', "");
      return;
    }
    if (!goodExpires || (isInteger(expires) && isLate(expires, ageMs))) {
      if (hasId) this.refuse(call, TOO_LATE_CODE, "too late", "");
      return;
    }
    // The SDK answers its own methods synchronously, and one of their notifications must not be
    // dropped.
    if (this.calls.length >= MAX_CALLS_IN_FLIGHT && !isReserved(method)) {
      if (hasId) this.refuse(call, BUSY, "too many calls are still running", "");
      return;
    }
    this.counters.calls++;
    const handler = this.handlers[index] as Handler;
    // Everything is inside the `try`: a board that runs out of memory continues with undefined,
    // which is not an answer.
    if (this.freshStack) Promise.resolve().then(() => this.run(call, handler, params));
    else this.run(call, handler, params);
  }

  /**
   * Refuses a call before reading it costs memory: the id is found if it is where our clients write
   * it.
   */
  private refuseUnread(plaintext: Uint8Array, reason: string, answer: Answer): void {
    const head = asciiText(plaintext.subarray(0, ID_WITHIN));
    const id = String(parseInt(head.substring(CALL_HEAD.length), 10));
    const begin = `${CALL_HEAD}${id},`;
    if (head.substring(0, begin.length) !== begin) {
      this.counters.notRequests++;
      return;
    }
    const call = { id: id, answer: answer };
    this.refuse(call, HANDLER_FAILED, reason, "");
  }

  /** Drops calls of a forgotten session; their handlers keep running, but nothing is sent. */
  forget(sid: string): void {
    for (const call of this.calls) if (call.sid === sid) call.open = false;
    this.calls = this.calls.filter((call) => call.open);
  }

  /** The number of calls whose handlers have not settled. */
  inFlight(): number {
    return this.calls.length;
  }

  private run(call: Call, handler: Handler, params: unknown): void {
    try {
      const result = handler(params, { sid: call.sid, notification: call.id === null });
      if (!isThenable(result)) {
        this.succeed(call, result);
        return;
      }
      this.calls.push(call);
      result.then(
        (value) => this.settle(call, () => this.succeed(call, value)),
        (thrown) => this.settle(call, () => this.fail(call, thrown)),
      );
    } catch (thrown) {
      this.settle(call, () => this.fail(call, thrown));
    }
  }

  /** A foreign promise may settle twice, and a session may be forgotten in the meantime. */
  private settle(call: Call, conclude: () => void): void {
    if (!call.open) return;
    call.open = false;
    this.calls = this.calls.filter((other) => other.open);
    conclude();
  }

  private succeed(call: Call, result: unknown): void {
    if (call.id === null) return;
    // In two steps, so that a board has freed the texts when it seals the bytes.
    const plaintext = this.encodeResult(call, result);
    if (plaintext !== null) call.answer(plaintext);
  }

  /** The answer with a result; null if no answer can contain it, and the call has failed. */
  private encodeResult(call: Call, result: unknown): Uint8Array | null {
    let text: string | undefined;
    let problem = "not a JSON value";
    try {
      text = encodeJson(result === undefined ? null : result);
    } catch (thrown) {
      problem = reasonOf(thrown);
    }
    if (text === undefined) {
      this.fail(call, `the result is ${problem}`);
      return null;
    }
    const answer = `{"jsonrpc":"2.0","id":${call.id},"result":${text}}`;
    if (answer.length > this.maxPlaintext) {
      this.fail(call, `the result has ${answer.length} bytes, at most ${this.maxPlaintext} fit`);
      return null;
    }
    return asciiBytes(answer);
  }

  private fail(call: Call, thrown: unknown): void {
    const reason = reasonOf(thrown);
    this.failed(call.method, reason, thrown);
    if (call.id === null) return;
    const error = (isObject(thrown) ? thrown : {}) as ThrownError;
    if (error.unavailable === true) {
      const data = `,"data":{"retryable":true,"sent":${error.sent === true}}`;
      this.refuse(call, DEVICE_UNAVAILABLE, reason, data);
    } else if (isProgramCode(error.code)) {
      this.refuse(call, error.code, reason, dataMember(error.data));
    } else {
      this.refuse(call, HANDLER_FAILED, reason, "");
    }
  }

  /** `data`: the member's text with the comma before it, or "". */
  private refuse(
    call: Pick<Call, "id" | "answer">,
    code: number,
    message: string,
    data: string,
  ): void {
    this.counters.errors++;
    const head = `{"jsonrpc":"2.0","id":${call.id === null ? "null" : call.id},"error":{"code":${code},"message":`;
    const text = head + encodeJson(message);
    // What does not fit is omitted: first the data, then the message. A call with an id that does
    // not fit cannot be answered at all.
    const ofHandler = code === HANDLER_FAILED || isProgramCode(code);
    const short = `${head}"${ofHandler ? "the handler failed" : "refused"}"}}`;
    const max = this.maxPlaintext;
    if (text.length + data.length + 2 <= max) call.answer(asciiBytes(`${text + data}}}`));
    else if (text.length + 2 <= max) call.answer(asciiBytes(`${text}}}`));
    else if (short.length <= max) call.answer(asciiBytes(short));
  }
}
