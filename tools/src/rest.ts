/** The relay's REST interface (section 4 of the contract) for commands: JSON in and out, failures as exit codes. */
import { Readable } from "node:stream";
import type { Problem } from "@blindrelay/protocol/schema/rest";
import { Failure, type FailureKind } from "./failure.ts";

const LIMIT_MS = 30_000;
/** An image over a slow line. */
const UPLOAD_LIMIT_MS = 3_600_000;

type Method = "GET" | "POST" | "PATCH" | "DELETE";

export class Rest {
  private readonly base: string;
  private readonly token: string | null;

  /** `base`: the relay's http(s) base. `token`: null before logging in. */
  constructor(base: string, token: string | null) {
    this.base = base;
    this.token = token;
  }

  /** The answer's JSON; undefined for 204. Rejects with a Failure. */
  async ask<Answer>(method: Method, path: string, body?: object): Promise<Answer> {
    const response = await this.send(method, path, LIMIT_MS, {
      headers: body === undefined ? {} : { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return readAnswer<Answer>(response);
  }

  /** PUTs bytes as they are read. The answer's JSON; rejects with a Failure. */
  async upload<Answer>(
    path: string,
    bytes: Readable,
    headers: Readonly<Record<string, string>>,
  ): Promise<Answer> {
    const body = Readable.toWeb(bytes) as unknown as BodyInit;
    const init = { headers: { ...headers }, body, duplex: "half" as const };
    return readAnswer<Answer>(await this.send("PUT", path, UPLOAD_LIMIT_MS, init));
  }

  private async send(
    method: Method | "PUT",
    path: string,
    limitMs: number,
    init: RequestInit & { headers: Record<string, string> },
  ): Promise<Response> {
    try {
      return await fetch(`${this.base}/api/v1${path}`, {
        ...init,
        method,
        // A token must not follow where somebody else points.
        redirect: "error",
        signal: AbortSignal.timeout(limitMs),
        headers: {
          ...init.headers,
          ...(this.token === null ? {} : { authorization: `Bearer ${this.token}` }),
        },
      });
    } catch (error) {
      const { message, cause } = error as Error;
      const why = cause instanceof Error ? cause.message : message;
      throw new Failure("unreachable", `the relay ${this.base} cannot be reached: ${why}`, error);
    }
  }
}

const readAnswer = async <Answer>(response: Response): Promise<Answer> => {
  if (response.status === 204) return undefined as Answer;
  const value: unknown = await response.json().catch(() => null);
  if (response.ok && value !== null) return value as Answer;
  throw problemFailure(response, value as Partial<Problem> | null);
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

/** The code that a problem document carried. */
export class RestFailure extends Failure {
  readonly code: string | undefined;

  constructor(kind: FailureKind, message: string, code: string | undefined) {
    super(kind, message);
    this.code = code;
  }
}

const problemFailure = (response: Response, problem: Partial<Problem> | null): RestFailure => {
  const kind = KINDS[response.status] ?? "unreachable";
  const text = problem?.detail ?? problem?.title ?? `the relay answered ${response.status}`;
  const places = (problem?.errors ?? []).map(({ path, message }) => `; ${path}: ${message}`);
  const retry = response.headers.get("retry-after");
  const wait = retry === null ? "" : ` (try again in ${retry} s)`;
  return new RestFailure(kind, `${text}${places.join("")}${wait}`, problem?.code);
};
