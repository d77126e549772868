/**
 * The relay's REST interface for commands: JSON in and out, failures as exit codes. Whatever
 * answers is not trusted: an answer is bounded and checked against its schema before it is used.
 */
import { Readable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import type { Problem } from "@blindrelay/protocol/schema/rest";
import type { Static, TSchema } from "typebox";
import { Failure, type FailureKind } from "./failure.ts";
import { networkFix, plainReason } from "./network-fix.ts";

export const REST_LIMITS = {
  answerMs: 30_000,
  /** A firmware image over a slow line. */
  uploadMs: 3_600_000,
  /** A page of 100 agents with all their metadata is below 1 MiB. */
  answerBytes: 16 * 1024 * 1024,
  /** Of one list: a million agents. */
  pages: 10_000,
  /** A busy relay is asked again this often, if it names a wait that a person would sit through. */
  retries: 3,
  longestWaitS: 10,
};

type Method = "GET" | "POST" | "PATCH" | "DELETE";

type Schemas = typeof import("@blindrelay/protocol/schema/rest");
/** The schemas of answers, by name; loaded while the relay works on its answer. */
type AnswerName = {
  [Name in keyof Schemas]: Schemas[Name] extends TSchema ? Name : never;
}[keyof Schemas];
type Answer<Name extends AnswerName> = Schemas[Name] extends TSchema
  ? Static<Schemas[Name]>
  : never;
/** Of a list: `{items, next_cursor}`. */
type PageName = "AgentPage" | "ReleasePage";

/** The first member of `value` that its schema does not allow; null if there is none. */
const deviationOf = async (name: AnswerName, value: unknown): Promise<string | null> => {
  const [schemas, { Check, Errors }] = await Promise.all([
    import("@blindrelay/protocol/schema/rest"),
    import("typebox/value"),
  ]);
  const schema = schemas[name] as TSchema;
  if (Check(schema, value)) return null;
  const [first] = Errors(schema, value);
  return `${first?.instancePath || "the whole"} ${first?.message ?? "is invalid"}`;
};

export class Rest {
  private readonly base: string;
  private readonly token: string | null;
  private readonly limits: typeof REST_LIMITS;

  /** `base`: the relay's http(s) base. `token`: null before logging in. */
  constructor(base: string, token: string | null, limits: Partial<typeof REST_LIMITS> = {}) {
    this.base = base;
    this.token = token;
    this.limits = { ...REST_LIMITS, ...limits };
  }

  /**
   * The response's JSON, which has the form of the schema `answer`. Rejects with a Failure.
   */
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

  /** All items of a list, page by page. */
  async list<Name extends PageName>(
    answer: Name,
    path: string,
    query: Readonly<Record<string, string>> = {},
  ): Promise<Answer<Name>["items"]> {
    const items: unknown[] = [];
    let cursor: string | null = null;
    for (let pages = 0; pages < this.limits.pages; pages++) {
      const search = new URLSearchParams({ ...query, ...(cursor === null ? {} : { cursor }) });
      const where: string = search.size === 0 ? path : `${path}?${search}`;
      const page: Answer<PageName> = await this.ask<PageName>(answer, "GET", where);
      items.push(...page.items);
      if (page.next_cursor === null) return items as Answer<Name>["items"];
      if (page.next_cursor === cursor) break;
      cursor = page.next_cursor;
    }
    throw new Failure("unreachable", `${this.base} does not end its list of ${path.slice(1)}`);
  }

  /** PUTs bytes as they are read. Rejects with a Failure. */
  async upload<Name extends AnswerName>(
    answer: Name,
    path: string,
    bytes: Readable,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer<Name>> {
    const body = Readable.toWeb(bytes) as unknown as BodyInit;
    const init = { headers: { ...headers }, body, duplex: "half" as const };
    return (await this.send(answer, "PUT", path, this.limits.uploadMs, init)) as Answer<Name>;
  }

  private async request(
    answer: AnswerName | null,
    method: Method,
    path: string,
    body?: object,
  ): Promise<unknown> {
    for (let tries = 0; ; tries++) {
      try {
        return await this.send(answer, method, path, this.limits.answerMs, {
          headers: body === undefined ? {} : { "content-type": "application/json" },
          ...(body === undefined ? {} : { body: JSON.stringify(body) }),
        });
      } catch (error) {
        const waitS = error instanceof RestFailure ? error.retryAfterS : null;
        const isSoon = waitS !== null && waitS <= this.limits.longestWaitS;
        if (!isSoon || tries === this.limits.retries) throw error;
        await sleep(waitS * 1000);
      }
    }
  }

  private async send(
    answer: AnswerName | null,
    method: Method | "PUT",
    path: string,
    limitMs: number,
    init: RequestInit & { headers: Record<string, string> },
  ): Promise<unknown> {
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
      text = await this.readText(response);
    } catch (error) {
      if (error instanceof Failure) throw error;
      throw this.networkFailure(error as Error, limitMs);
    }
    return this.read(answer, response, text);
  }

  /** Rejects with a Failure for more than a relay answers. */
  private async readText(response: Response): Promise<string> {
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      size += chunk.length;
      if (size > this.limits.answerBytes) {
        const text = `${this.base} answered more than ${this.limits.answerBytes} bytes, unlike a relay`;
        throw new Failure("unreachable", text);
      }
      chunks.push(chunk);
    }
    return Buffer.concat(chunks).toString("utf8");
  }

  private async read(
    answer: AnswerName | null,
    response: Response,
    text: string,
  ): Promise<unknown> {
    if (answer === null && response.status === 204) return undefined;
    const value = parse(text);
    if (answer !== null && response.ok && value !== undefined) {
      const deviation = await deviationOf(answer, value);
      if (deviation === null) return value;
      throw new Failure(
        "unreachable",
        `${this.base} answered unlike a relay (${deviation}): is the address right?`,
      );
    }
    const problem = asProblem(value);
    if (problem === null) throw this.strangeFailure(response);
    const failure = problemFailure(response, problem);
    // If credentials in the body are wrong, the token is not at fault.
    const isToken = this.token !== null && failure.code !== "INVALID_CREDENTIALS";
    if (response.status !== 401 || !isToken) throw failure;
    const fix = "blindrelay login gives you a new token (or set BLINDRELAY_ACCOUNT_TOKEN)";
    throw new RestFailure("refused", `${failure.message} ${fix}`, failure.code, null);
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

/** A problem document's code, and when a busy relay may be asked again (null: not so). */
export class RestFailure extends Failure {
  readonly code: string | undefined;
  readonly retryAfterS: number | null;

  constructor(
    kind: FailureKind,
    message: string,
    code: string | undefined,
    retryAfterS: number | null,
  ) {
    super(kind, message);
    this.code = code;
    this.retryAfterS = retryAfterS;
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
  // Such a request has not been executed; a lockout has another code.
  const isBusy = problem.code === "RATE_LIMITED";
  const after = headers.get("retry-after") ?? "";
  const retryAfterS = isBusy && /^\d{1,6}$/.test(after) ? Number(after) : null;
  return new RestFailure(kind, message, problem.code, retryAfterS);
};
