/** The relay's REST API, as used by the page. Tokens stay in this page's memory. */
import type { Problem } from "@blindrelay/protocol/schema/rest";
import { fixOf, waitText } from "./fixes.ts";

/** An error and its fix, both for a person. */
export class Trouble extends Error {
  readonly fix: string;
  readonly code: string;
  readonly status: number;

  constructor(message: string, fix: string, code: string, status = 0) {
    super(message);
    this.name = "Trouble";
    this.fix = fix;
    this.code = code;
    this.status = status;
  }
}

/** A slow relay is acceptable, a page that waits forever is not. */
const TIMEOUT_MS = 20_000;

export interface Request {
  readonly method?: "GET" | "POST" | "PATCH" | "DELETE";
  readonly token?: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: object;
}

/** One request to `/api/v1/PATH` of the relay that served this page. Rejects with a Trouble. */
export const ask = async <Answer>(path: string, request: Request = {}): Promise<Answer> => {
  const { method = "GET", token, query = {}, body } = request;
  const url = new URL(`api/v1/${path}`, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== "") url.searchParams.set(name, value);
  }
  const headers: Record<string, string> = { accept: "application/json" };
  if (token !== undefined) headers.authorization = `Bearer ${token}`;
  if (body !== undefined) headers["content-type"] = "application/json";
  const text = body === undefined ? null : JSON.stringify(body);
  const signal = AbortSignal.timeout(TIMEOUT_MS);
  const options = { method, headers, body: text, signal, credentials: "omit" as const };
  let response: Response;
  try {
    response = await fetch(url, options);
  } catch {
    throw new Trouble("The relay does not answer.", fixOf("UNREACHABLE"), "UNREACHABLE");
  }
  if (response.status === 204) return undefined as Answer;
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer as Answer;
  throw troubleOf(response, answer);
};

const troubleOf = (response: Response, answer: Partial<Problem> | null): Trouble => {
  const { status, headers } = response;
  if (typeof answer?.code !== "string" || typeof answer.detail !== "string") {
    const fix = "Something between this page and the relay answers instead: check the proxy.";
    return new Trouble(`An answer that is not the relay's (HTTP ${status}).`, fix, "", status);
  }
  const { code, detail, errors = [] } = answer;
  const where = errors.map(({ path, message }) => `${path} ${message}`).join("; ");
  const message = where === "" ? detail : `${detail} ${where}`;
  const wait = Number(headers.get("retry-after"));
  const fix = wait > 0 ? `Try again in ${waitText(wait)}.` : fixOf(code);
  return new Trouble(message, fix, code, status);
};
