/**
 * The relay's REST interface, typed by its schemas. Whatever answers is not trusted: an answer is
 * bounded, and checked against its schema before it is used; a token does not follow a redirection.
 */
import { decodeJson, toBase64url } from "@blindrelay/protocol/crypto";
import { type HttpPort, readText, reasonOfAnswer, reasonOfError } from "@blindrelay/protocol/net";
import { restBase } from "@blindrelay/protocol/relay-url";
import type {
  IdempotencyHeaders,
  LoginAnswer,
  LoginBody,
  Problem,
} from "@blindrelay/protocol/schema/rest";
import type { Static, TSchema } from "typebox";
import { isTooDeep } from "../core/levels.ts";

export interface RestLimits {
  readonly answerMs: number;
  /** A firmware image over a slow line. */
  readonly uploadMs: number;
  /** A page of 100 agents with all their metadata is below 1 MiB. */
  readonly answerBytes: number;
  /** Of one list: a million agents. */
  readonly pages: number;
  /** A busy relay is asked again this often, if it names a wait that a person would sit through. */
  readonly retries: number;
  readonly longestWaitS: number;
}

export const REST_LIMITS: RestLimits = {
  answerMs: 30_000,
  uploadMs: 3_600_000,
  answerBytes: 16 * 1024 * 1024,
  pages: 10_000,
  retries: 3,
  longestWaitS: 10,
};

/** What the relay does once for each key: it makes something, or answers a secret only once. */
const KEYED = /^\/(agents|releases|admin\/users)(\/|$)/;
const USERS = /^\/admin\/users(\/|$)/;
const KEY_HEADER: keyof IdempotencyHeaders = "idempotency-key";
/** The relay remembers as many of an account. */
const MAX_LOST = 1000;
const KEY_BYTES = 16;
/** For a relay that restarts, or the next node. */
const LOST_WAIT_S = 1;
/** Answers that come before a key is looked at: nothing is known of what was lost. */
const UNDECIDED = [401, 403, 429];
/** More than the metadata that a relay keeps can have. */
const MAX_LEVELS = 5000;

type Schemas = typeof import("@blindrelay/protocol/schema/rest");
/** The schemas of answers, by name. */
export type AnswerName = {
  [Name in keyof Schemas]: Schemas[Name] extends TSchema ? Name : never;
}[keyof Schemas];
export type Answer<Name extends AnswerName> = Schemas[Name] extends TSchema
  ? Static<Schemas[Name]>
  : never;
/** Of lists: `{items, next_cursor}`. */
export type PageName = {
  [Name in AnswerName]: Answer<Name> extends Page ? Name : never;
}[AnswerName];
interface Page {
  readonly items: readonly unknown[];
  readonly next_cursor: string | null;
}
type Item<Name extends PageName> = (Answer<Name> & Page)["items"][number];

export type Method = "GET" | "POST" | "PATCH" | "DELETE";
export type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export interface RestOptions {
  /** The relay: http(s) base or ws(s) address. */
  readonly url: string;
  /** `acct_`, or what a login or a session gave; null: none yet. */
  readonly token?: string | null;
  readonly limits?: Partial<RestLimits>;
  /** Ends all requests. */
  readonly signal?: AbortSignal;
}

/** What an edge provides. */
export interface RestPorts {
  readonly http: HttpPort;
  /** The first deviation of `value` from the schema of that name; null: none. */
  readonly check: (name: AnswerName, value: unknown) => Promise<string | null>;
}

/** Why a request failed. `message` is for a person, and contains no token. */
export class RestError extends Error {
  /**
   * The relay's own code; else `UNREACHABLE`, `TIMED_OUT`, or `NOT_A_RELAY` for what no relay
   * answers.
   */
  readonly code: string;
  /** 0 if nothing answered. */
  readonly status: number;
  /** When to ask again, if the relay said so. */
  readonly retryAfterS: number | null;
  /** What is wrong in the request. */
  readonly errors: NonNullable<Problem["errors"]>;

  constructor(
    code: string,
    message: string,
    more: {
      readonly status?: number;
      readonly retryAfterS?: number | null;
      readonly errors?: Problem["errors"] | undefined;
      readonly cause?: unknown;
    } = {},
  ) {
    super(message, more.cause === undefined ? {} : { cause: more.cause });
    this.name = "RestError";
    this.code = code;
    this.status = more.status ?? 0;
    this.retryAfterS = more.retryAfterS ?? null;
    this.errors = more.errors ?? [];
  }
}

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Blob | AsyncIterable<Uint8Array>;
  readonly limitMs: number;
}

export class Rest {
  /** The relay's http(s) base, without a slash at its end. */
  readonly base: string;
  /** The relay's clock (Unix milliseconds) when it last answered; null: it did not say. */
  relayTime: number | null = null;

  private readonly token: string | null;
  private readonly limits: RestLimits;
  private readonly signal: AbortSignal | undefined;
  private readonly ports: RestPorts;
  /** The keys of requests that may have been done, for whoever asks for the same again. */
  private readonly lost = new Map<string, string>();

  constructor(options: RestOptions, ports: RestPorts) {
    this.base = restBase(options.url);
    this.token = options.token ?? null;
    this.limits = { ...REST_LIMITS, ...options.limits };
    this.signal = options.signal;
    this.ports = ports;
  }

  /**
   * Logs in by password, and with a one-time or recovery code if the account has a second factor.
   * `user.api_token` of the answer is the account token.
   */
  logIn(given: LoginBody): Promise<LoginAnswer> {
    return this.ask("LoginAnswer", "POST", "/auth/login", given);
  }

  /** The response's JSON, which has the form of the schema `answer`. Rejects with a RestError. */
  async ask<Name extends AnswerName>(
    answer: Name,
    method: Method,
    path: string,
    body?: object,
  ): Promise<Answer<Name>> {
    return (await this.request(answer, method, path, body)) as Answer<Name>;
  }

  /** The same for an operation that answers nothing. */
  async tell(method: Method, path: string, body?: object): Promise<void> {
    await this.request(null, method, path, body);
  }

  /** The items of a list, which is read page by page. */
  async *items<Name extends PageName>(
    answer: Name,
    path: string,
    query: Query = {},
  ): AsyncGenerator<Item<Name>, void> {
    for await (const page of this.pages(answer, path, query)) {
      yield* (page as unknown as Page).items as Item<Name>[];
    }
  }

  /** The same, each page when the one before was taken. Throws if a relay does not end the list. */
  async *pages<Name extends PageName>(
    answer: Name,
    path: string,
    query: Query = {},
  ): AsyncGenerator<Answer<Name>, void> {
    let cursor: string | null = null;
    const asked = new Set<string | null>();
    while (asked.size < this.limits.pages && !asked.has(cursor)) {
      asked.add(cursor);
      const at = withQuery(path, { ...query, cursor });
      const page: Answer<Name> = await this.ask(answer, "GET", at);
      yield page;
      cursor = (page as unknown as Page).next_cursor;
      if (cursor === null) return;
    }
    const text = `${this.base} does not end its list of ${path.slice(1)}`;
    throw this.fail(new RestError("NOT_A_RELAY", text));
  }

  async list<Name extends PageName>(
    answer: Name,
    path: string,
    query: Query = {},
  ): Promise<Item<Name>[]> {
    const all: Item<Name>[] = [];
    for await (const item of this.items(answer, path, query)) all.push(item);
    return all;
  }

  /** PUTs bytes; on Node as they are read. Rejects with a RestError. */
  async upload<Name extends AnswerName>(
    answer: Name,
    path: string,
    body: Blob | AsyncIterable<Uint8Array>,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer<Name>> {
    const sent = { method: "PUT", path, headers, body, limitMs: this.limits.uploadMs };
    try {
      return (await this.send(answer, sent)) as Answer<Name>;
    } catch (error) {
      throw error instanceof RestError ? this.fail(error) : error;
    }
  }

  /** The error that a caller gets. */
  protected fail(error: RestError): Error {
    return error;
  }

  private async request(
    answer: AnswerName | null,
    method: Method,
    path: string,
    body?: object,
  ): Promise<unknown> {
    const json = body === undefined ? null : JSON.stringify(body);
    const what = `${path} ${json}`;
    const key = method === "POST" && KEYED.test(path) ? this.takeKey(what) : null;
    const headers: Record<string, string> = {
      ...(json === null ? {} : { "content-type": "application/json" }),
      ...(key === null ? {} : { [KEY_HEADER]: key }),
    };
    const limitMs = this.limits.answerMs;
    const sent: Sent = { method, path, headers, ...(json === null ? {} : { body: json }), limitMs };
    const isOnce = ["POST", "DELETE"].includes(method);
    try {
      return key === null
        ? await this.sendOrRetry(answer, sent, (error) => waitOf(error, isOnce))
        : await this.sendWithKey(answer, sent, what, key);
    } catch (error) {
      throw error instanceof RestError ? this.fail(error) : error;
    }
  }

  /** Sends it as often as `waitFor` names a wait in seconds that a person would sit through. */
  private async sendOrRetry(
    answer: AnswerName | null,
    sent: Sent,
    waitFor: (error: RestError) => number | null,
  ): Promise<unknown> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.send(answer, sent);
      } catch (error) {
        const waitS = error instanceof RestError ? waitFor(error) : null;
        const isSoon = waitS !== null && waitS <= this.limits.longestWaitS;
        if (!isSoon || tries === this.limits.retries) throw error;
        await pause(waitS * 1000, this.signal);
      }
    }
  }

  /** Once more after a loss. The key of a request that may have been done is kept. */
  private async sendWithKey(
    answer: AnswerName | null,
    sent: Sent,
    what: string,
    key: string,
  ): Promise<unknown> {
    const losses: RestError[] = [];
    try {
      return await this.sendOrRetry(answer, sent, (error) => {
        if (isLost(error)) losses.push(error);
        const again = losses.length === 1 && losses[0] === error ? LOST_WAIT_S : null;
        return waitOf(error, false) ?? again;
      });
    } catch (error) {
      const lost = losses.at(-1);
      const isUndecided = error instanceof RestError && UNDECIDED.includes(error.status);
      if (lost === undefined || (error !== lost && !isUndecided)) throw error;
      // A password stays nowhere: a user that was made after all is refused as taken.
      if (!USERS.test(sent.path)) this.keepKey(what, key);
      throw lost;
    }
  }

  /** A new one, or that of the same request whose answer was lost. */
  private takeKey(what: string): string {
    const kept = this.lost.get(what);
    // Of two at once only one asks again.
    this.lost.delete(what);
    return kept ?? toBase64url(crypto.getRandomValues(new Uint8Array(KEY_BYTES)));
  }

  private keepKey(what: string, key: string): void {
    this.lost.set(what, key);
    const [oldest] = this.lost.keys();
    if (this.lost.size > MAX_LOST && oldest !== undefined) this.lost.delete(oldest);
  }

  private async send(name: AnswerName | null, sent: Sent): Promise<unknown> {
    const { answer, text } = await this.exchange(sent);
    return this.read(name, answer, text);
  }

  private async exchange(sent: Sent) {
    const { limitMs, path, headers, ...request } = sent;
    const timeout = AbortSignal.timeout(limitMs);
    const signal = this.signal === undefined ? timeout : AbortSignal.any([timeout, this.signal]);
    const bearer: Record<string, string> =
      this.token === null ? {} : { authorization: `Bearer ${this.token}` };
    try {
      const answer = await this.ports.http({
        ...request,
        url: `${this.base}/api/v1${path}`,
        headers: { accept: "application/json", ...headers, ...bearer },
        signal,
      });
      const text = await readText(answer, this.limits.answerBytes);
      if (text === null) {
        const much = `${this.base} answered more than ${this.limits.answerBytes} bytes, unlike a relay`;
        throw new RestError("NOT_A_RELAY", much, { status: answer.status });
      }
      const time = Date.parse(answer.header("date") ?? "");
      this.relayTime = Number.isNaN(time) ? null : time;
      return { answer, text };
    } catch (error) {
      if (error instanceof RestError) throw error;
      if (this.signal?.aborted === true) throw this.signal.reason;
      if (timeout.aborted) {
        const late = `the relay ${this.base} did not answer in ${limitMs / 1000} s`;
        throw new RestError("TIMED_OUT", late, { cause: error });
      }
      const away = `the relay ${this.base} cannot be reached: ${reasonOfError(error).text}`;
      throw new RestError("UNREACHABLE", away, { cause: error });
    }
  }

  private async read(
    name: AnswerName | null,
    { status, header }: { readonly status: number; header(name: string): string | null },
    text: string,
  ): Promise<unknown> {
    if (name === null && status === 204) return undefined;
    // Undefined: a proxy's page, or an interrupted response.
    const value = isTooDeep(text, MAX_LEVELS) ? undefined : decodeJson(text);
    const isGood = status >= 200 && status < 300;
    if (name !== null && isGood && value !== undefined) {
      const deviation = await this.ports.check(name, value);
      if (deviation === null) return value;
      const strange = `${this.base} answered unlike a relay (${deviation}): is the address right?`;
      throw new RestError("NOT_A_RELAY", strange, { status });
    }
    const after = header("retry-after");
    const problem = isGood ? null : asProblem(value);
    if (problem !== null) throw problemError(status, problem, after);
    const why = reasonOfAnswer(status, header("content-type"), header("location")).text;
    throw new RestError("NOT_A_RELAY", `${this.base}: ${why}${retryText(after)}`, { status });
  }
}

/** A path with a query; absent and empty values are left out. */
export const withQuery = (path: string, query: Query): string => {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== null && value !== undefined && value !== "") search.set(name, String(value));
  }
  const text = search.toString();
  return text === "" ? path : `${path}?${text}`;
};

/**
 * When the request may be made again; null: not by itself. A busy relay has not executed it; one
 * whose store is away may have. `isOnce`: a POST without a key, and a DELETE, which would find
 * nothing.
 */
const waitOf = ({ code, retryAfterS }: RestError, isOnce: boolean): number | null =>
  code === "RATE_LIMITED" || (code === "UNAVAILABLE" && !isOnce) ? retryAfterS : null;

/** It may have been done: nothing answered, or a proxy did, or a relay whose store was away. */
const isLost = ({ code, status }: RestError): boolean =>
  ["UNREACHABLE", "TIMED_OUT", "UNAVAILABLE"].includes(code) ||
  (code === "NOT_A_RELAY" && status >= 502);

const pause = (ms: number, signal: AbortSignal | undefined): Promise<void> =>
  new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    if (signal?.aborted === true) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });

/** A problem document, not trusted: another server may have written it. */
const asProblem = (value: unknown): Partial<Problem> | null => {
  if (typeof value !== "object" || value === null) return null;
  const { code, title, detail, errors, request_id } = value as Record<string, unknown>;
  if (typeof code !== "string") return null;
  return {
    code,
    ...(typeof title === "string" ? { title } : {}),
    ...(typeof detail === "string" ? { detail } : {}),
    ...(typeof request_id === "string" ? { request_id } : {}),
    ...(Array.isArray(errors) ? { errors: errors.filter(isPlace) } : {}),
  };
};

const isPlace = (value: unknown): value is NonNullable<Problem["errors"]>[number] => {
  const { path, message } = Object(value) as Record<string, unknown>;
  return typeof path === "string" && typeof message === "string";
};

/** In seconds, or as a date, which only proxies send. */
const retryText = (header: string | null): string => {
  if (header === null) return "";
  return /^\d+$/.test(header) ? ` (try again in ${header} s)` : ` (try again after ${header})`;
};

const problemError = (
  status: number,
  { code = "", title, detail, errors = [], request_id }: Partial<Problem>,
  after: string | null,
): RestError => {
  const text = detail ?? title ?? `the relay answered ${status}`;
  const places = errors.map(({ path, message }) => `; ${path}: ${message}`).join("");
  // The relay's operator can find it in the log by this.
  const trace = status >= 500 && request_id ? ` (request ${request_id})` : "";
  const retryAfterS = /^\d{1,6}$/.test(after ?? "") ? Number(after) : null;
  const isSaid = retryAfterS !== null && text.includes(`${retryAfterS} s`);
  const message = `${text}${places}${trace}${isSaid ? "" : retryText(after)}`;
  return new RestError(code, message, { status, retryAfterS, errors });
};
