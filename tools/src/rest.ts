/**
 * The relay's REST interface for commands: JSON in and out, failures as
 * exit codes.
 */
import { Readable } from "node:stream";
import type { Problem } from "@blindrelay/protocol/schema/rest";
import { Failure, type FailureKind } from "./failure.ts";
import { networkFix, plainReason } from "./network-fix.ts";

export const REST_LIMITS = {
  answerMs: 30_000,
  /** A firmware image over a slow line. */
  uploadMs: 3_600_000,
};

type Method = "GET" | "POST" | "PATCH" | "DELETE";

export class Rest {
  private readonly base: string;
  private readonly token: string | null;
  private readonly limits: typeof REST_LIMITS;

  /** `base`: the relay's http(s) base. `token`: null before logging in. */
  constructor(base: string, token: string | null, limits = REST_LIMITS) {
    this.base = base;
    this.token = token;
    this.limits = limits;
  }

  /** The response's JSON; undefined for 204. Rejects with a Failure. */
  async ask<Answer>(method: Method, path: string, body?: object): Promise<Answer> {
    return this.send(method, path, this.limits.answerMs, {
      headers: body === undefined ? {} : { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  }

  /** PUTs bytes as they are read. Returns the response's JSON; rejects with a Failure. */
  async upload<Answer>(
    path: string,
    bytes: Readable,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    const body = Readable.toWeb(bytes) as unknown as BodyInit;
    const init = { headers: { ...headers }, body, duplex: "half" as const };
    return this.send("PUT", path, this.limits.uploadMs, init);
  }

  private async send<Answer>(
    method: Method | "PUT",
    path: string,
    limitMs: number,
    init: RequestInit & { headers: Record<string, string> },
  ): Promise<Answer> {
    let response: Response;
    let text: string;
    try {
      response = await fetch(`${this.base}/api/v1${path}`, {
        ...init,
        method,
        // A token must not follow a redirection.
        redirect: "manual",
        signal: AbortSignal.timeout(limitMs),
        headers: {
          ...init.headers,
          ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }),
        },
      });
      text = await response.text();
    } catch (error) {
      throw this.networkFailure(error as Error, limitMs);
    }
    return this.read<Answer>(response, text);
  }

  private read<Answer>(response: Response, text: string): Answer {
    if (response.status === 204) return undefined as Answer;
    const value = parse(text);
    if (response.ok && value !== undefined) return value as Answer;
    const problem = asProblem(value);
    if (problem === null) throw this.strangeFailure(response);
    const failure = problemFailure(response, problem);
    // If credentials in the body are wrong, the token is not at fault.
    const isToken = this.token !== null && failure.code !== "INVALID_CREDENTIALS";
    if (response.status !== 401 || !isToken) throw failure;
    const fix = "blindrelay login gives you a new token (or set BLINDRELAY_ACCOUNT_TOKEN)";
    throw new RestFailure("refused", `${failure.message} ${fix}`, failure.code);
  }

  private networkFailure(error: Error, limitMs: number): Failure {
    if (error.name === "TimeoutError") {
      const text = `the relay ${this.base} did not answer in ${limitMs / 1000} s`;
      return new Failure("timeout", text, error);
    }
    const cause = error.cause as (Error & { readonly code?: string }) | undefined;
    // A name with several addresses fails with an error that has no message.
    const why = cause?.message || cause?.code || error.message;
    const text = `the relay ${this.base} cannot be reached: ${plainReason(why)}`;
    return new Failure("unreachable", text + networkFix(`${why} ${cause?.code}`), error);
  }

  /** The answering server is not a relay. */
  private strangeFailure({ status, headers }: Response): Failure {
    const location = headers.get("location");
    if (location !== null) {
      const text = `${this.base} points to ${location}: use that address, because tokens are not sent on to it`;
      return new Failure("unreachable", text);
    }
    const type = headers.get("content-type")?.split(";")[0] ?? "nothing";
    return new Failure(
      "unreachable",
      `${this.base} answered ${status} with ${type}, unlike a relay: is the address right, or is there a proxy in between?${retryText(headers.get("retry-after"))}`,
    );
  }
}

/** Undefined if it is not JSON, such as a proxy's page or an interrupted response. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const KINDS: { readonly [status: number]: FailureKind } = {
  400: "usage",
  401: "refused",
  403: "refused",
  404: "refused",
  409: "refused",
  422: "usage",
  429: "refused",
};

/** The code of a problem document. */
export class RestFailure extends Failure {
  readonly code: string | undefined;

  constructor(kind: FailureKind, message: string, code: string | undefined) {
    super(kind, message);
    this.code = code;
  }
}

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
    ...(Array.isArray(errors) ? { errors } : {}),
  };
};

/** In seconds, or as a date, which only proxies send. */
const retryText = (header: string | null): string => {
  if (header === null) return "";
  return /^\d+$/.test(header) ? ` (try again in ${header} s)` : ` (try again after ${header})`;
};

/** Codes that take precedence over the status. */
const KINDS_BY_CODE: { readonly [code: string]: FailureKind } = {
  UNTRUSTED_SIGNATURE: "refused", // the request is well-formed; the relay does not accept this key
};

const problemFailure = (response: Response, problem: Partial<Problem>): RestFailure => {
  const { status, headers } = response;
  const text = problem.detail ?? problem.title ?? `the relay answered ${status}`;
  const places = (problem.errors ?? []).map((error) => `; ${error?.path}: ${error?.message}`);
  // The relay's operator can find it in the log by this.
  const trace = status >= 500 && problem.request_id ? ` (request ${problem.request_id})` : "";
  const wait = retryText(headers.get("retry-after"));
  const message = `${text}${places.join("")}${trace}${wait}`;
  const kind = KINDS_BY_CODE[problem.code ?? ""] ?? KINDS[status] ?? "unreachable";
  return new RestFailure(kind, message, problem.code);
};
