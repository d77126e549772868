/** Every error response: RFC 9457 problem documents from the one table of errors. */
import { randomUUID } from "node:crypto";
import { STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import { ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { PROBLEM_MEDIA_TYPE, type Problem } from "@blindrelay/protocol/schema/rest";
import type { FastifyError, FastifyReply, FastifyRequest } from "fastify";
import { contained } from "../../base/contain.ts";
import { Overloaded } from "../../control/hash-queue.ts";
import { QuotaExceeded } from "../../control/quotas.ts";
import { unavailability } from "../../store/unavailable.ts";
import type { HttpContext } from "./context.ts";
import { InvalidRequest } from "./validation.ts";

/** A database that restarts is usually back by then. */
const STORE_RETRY_AFTER_S = 2;

/** Thrown by a route to answer with a problem. `code` must have an HTTP status. */
export class HttpProblem extends Error {
  readonly code: ErrorCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly errors: Problem["errors"];

  constructor(
    code: ErrorCode,
    detail: string,
    more: { headers?: Record<string, string>; errors?: Problem["errors"] } = {},
  ) {
    super(detail);
    this.code = code;
    this.headers = more.headers ?? {};
    this.errors = more.errors;
  }
}

/** For what passes by itself. `seconds`: when to try again. */
export const passingProblem = (code: ErrorCode, detail: string, seconds: number): HttpProblem =>
  new HttpProblem(code, detail, { headers: { "retry-after": String(seconds) } });

export const notFound = (what: string): HttpProblem =>
  new HttpProblem("NOT_FOUND", `This ${what} does not exist, or is not yours.`);

/** A 422 for what a schema cannot express. `path`: a JSON pointer into the body. */
export const invalidBody = (path: string, message: string): HttpProblem =>
  new HttpProblem("VALIDATION_FAILED", "The body does not have the right shape.", {
    errors: [{ path, in: "body", message }],
  });

/** A 422 for a header, which `detail` explains. */
export const invalidHeader = (
  code: ErrorCode,
  detail: string,
  name: string,
  message: string,
): HttpProblem =>
  new HttpProblem(code, detail, { errors: [{ path: `/${name}`, in: "headers", message }] });

/** Codes of the table for fastify's own errors. Its other 4xx are unreadable requests. */
const FRAMEWORK_CODES: Readonly<Record<string, ErrorCode>> = {
  FST_ERR_CTP_BODY_TOO_LARGE: "TOO_LARGE",
  FST_ERR_CTP_INVALID_MEDIA_TYPE: "UNSUPPORTED_MEDIA_TYPE",
};

/** Whether the sender left in the middle of its body. */
const isCut = (error: unknown, { raw }: FastifyRequest): boolean =>
  raw.destroyed &&
  !raw.complete &&
  (error === raw.errored || (error as FastifyError).code === "ERR_STREAM_PREMATURE_CLOSE");

/** Nobody gets it, but the log of requests has its status. */
const cutBody = (): HttpProblem => new HttpProblem("BAD_REQUEST", "The body did not arrive.");

/** fastify's error handler: answers, and logs our own faults. */
export const answerProblems = (
  { outages, store }: Pick<HttpContext, "outages" | "store">,
  thrown: unknown,
  request: FastifyRequest,
  reply: FastifyReply,
): void => {
  let error = thrown;
  let problem = isCut(error, request) ? cutBody() : asProblem(error);
  if (problem.code === "INTERNAL") {
    error = store.suspect() ?? thrown;
    problem = asProblem(error);
  }
  if (problem.code === "INTERNAL") {
    request.log.error({ err: error }, "request failed");
  } else if (unavailability(error) !== null) {
    outages.error({ err: error, request_id: request.id }, "store unavailable");
  }
  const body = problemBody(problem, request.id);
  if (body.status === 401) reply.header("www-authenticate", "Bearer");
  reply.headers(problem.headers).header("content-type", PROBLEM_MEDIA_TYPE).code(body.status);
  // As bytes, because fastify adds a charset to text, and this media type has none.
  reply.send(Buffer.from(JSON.stringify(body)));
};

const asProblem = (error: unknown): HttpProblem => {
  if (error instanceof HttpProblem) return error;
  if (error instanceof InvalidRequest) {
    const detail = "The request does not have the right shape";
    return new HttpProblem("VALIDATION_FAILED", detail, { errors: error.errors });
  }
  if (unavailability(error) !== null) {
    const detail =
      "The relay's store cannot be reached or written now; no change was acknowledged.";
    return passingProblem("UNAVAILABLE", detail, STORE_RETRY_AFTER_S);
  }
  if (error instanceof QuotaExceeded) return new HttpProblem("QUOTA_EXCEEDED", error.message);
  if (error instanceof Overloaded) {
    return passingProblem("UNAVAILABLE", "Too many logins are waiting.", error.retryAfterS);
  }
  const { code, statusCode, message } = error as Partial<FastifyError>;
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500) {
    return new HttpProblem(FRAMEWORK_CODES[code ?? ""] ?? "BAD_REQUEST", message ?? "");
  }
  return new HttpProblem("INTERNAL", "The relay failed; its log has this request id.");
};

const problemBody = (problem: HttpProblem, requestId: string): Problem => {
  const entry = ERRORS[problem.code];
  return {
    type: `urn:blindrelay:error:${problem.code}`,
    title: entry.meaning,
    status: entry.http ?? 500,
    detail: problem.message,
    code: problem.code,
    request_id: requestId,
    ...(problem.errors === undefined ? {} : { errors: problem.errors }),
  };
};

/** For bytes that are not an HTTP request: node's parser gave up. */
export const malformedRequest = (error: Error, socket: Socket): void => {
  const late = (error as NodeJS.ErrnoException).code === "ERR_HTTP_REQUEST_TIMEOUT";
  const detail = late
    ? "The request took too long to arrive."
    : "This is not an HTTP request that the relay can read.";
  endWithProblem(socket, new HttpProblem("BAD_REQUEST", detail));
};

/** A peer on a slow network has its answer by then. */
const LINGER_MS = 3000;

const ending = new WeakSet<Socket>();

const cut = contained("timer", "a refused connection did not end", (socket: Socket) => {
  socket.destroy();
});

const asText = (problem: HttpProblem): string => {
  const document = problemBody(problem, randomUUID());
  const body = JSON.stringify(document);
  const headers = {
    "content-type": PROBLEM_MEDIA_TYPE,
    "content-length": String(Buffer.byteLength(body)),
    connection: "close",
    ...problem.headers,
  };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const status = `${document.status} ${STATUS_CODES[document.status]}`;
  return `HTTP/1.1 ${status}\r\n${lines.join("")}\r\n${body}`;
};

/**
 * Writes a problem to a socket that has no reply object, and ends the socket: at the latest after
 * LINGER_MS, whatever its peer does.
 */
export const endWithProblem = (socket: Socket, problem: HttpProblem): void => {
  if (socket.writable) socket.end(asText(problem));
  if (ending.has(socket)) return;
  ending.add(socket);
  socket.resume(); // otherwise the peer's end is never noticed
  const timer = setTimeout(cut, LINGER_MS, socket);
  timer.unref();
  socket.once("close", () => clearTimeout(timer));
};
