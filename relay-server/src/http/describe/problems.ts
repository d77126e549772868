/**
 * The problems that an operation may answer. Those that follow from a route's credentials, body and
 * parameters are derived; those that only its handler knows are declared: `config: { problems:
 * ["CONFLICT"] }`.
 */
import { ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { PROBLEM_MEDIA_TYPE, type Problem } from "@blindrelay/protocol/schema/rest";
import type { RouteOptions } from "fastify";
import type { Access } from "../base/access.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** In addition to those of every route of this kind. */
    problems?: readonly ErrorCode[];
  }
}

const ALWAYS: readonly ErrorCode[] = ["BAD_REQUEST", "INTERNAL"];
const WITH_STORE: readonly ErrorCode[] = ["UNAVAILABLE"];
const UNLESS_UNLIMITED: readonly ErrorCode[] = ["RATE_LIMITED"];
const WITH_BODY: readonly ErrorCode[] = ["TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE"];
const WITH_CREDENTIALS: readonly ErrorCode[] = [
  "AUTH_REQUIRED",
  "INVALID_TOKEN",
  "WRONG_TOKEN_KIND",
  "SESSION_EXPIRED",
  "LIMIT_EXCEEDED",
  "FORBIDDEN",
  "TOTP_ENROLMENT_REQUIRED",
  "LOCKED_OUT",
];
const REQUEST_ID = "6f1d3f0e-7c0c-4b0f-9a35-0a4d5b1c2e3f";
const BODY_METHODS = ["POST", "PUT", "PATCH", "DELETE"];

/** The codes that a route may answer, without duplicates. */
export const problemsOf = (route: RouteOptions, access: Access | null): ErrorCode[] => {
  const { body, querystring, params, headers } = route.schema ?? {};
  const takesBody = [route.method].flat().some((method) => BODY_METHODS.includes(method));
  const hasShape = [body, querystring, params, headers].some((part) => part !== undefined);
  const codes: ErrorCode[] = [
    ...ALWAYS,
    ...(route.url.startsWith("/api/v1/") ? WITH_STORE : []),
    ...(route.config?.unlimited === true ? [] : UNLESS_UNLIMITED),
    ...(takesBody ? WITH_BODY : []),
    ...(access === null ? [] : WITH_CREDENTIALS),
    ...(route.url.includes(":") ? (["NOT_FOUND"] as const) : []),
    ...(hasShape ? (["VALIDATION_FAILED"] as const) : []),
    ...(route.config?.problems ?? []),
  ];
  return [...new Set(codes)];
};

/** An OpenAPI Response Object for each status among `codes`. */
export const problemResponses = (codes: readonly ErrorCode[]): Record<string, object> => {
  const byStatus = Map.groupBy(codes, (code) => String(ERRORS[code].http));
  return Object.fromEntries(
    [...byStatus].map(([status, some]) => [status, response(status, some)]),
  );
};

const response = (status: string, codes: readonly ErrorCode[]): object => ({
  description: codes.map((code) => `\`${code}\`: ${ERRORS[code].meaning}`).join("\n\n"),
  headers: {
    "X-Request-Id": { $ref: "#/components/headers/RequestId" },
    ...HEADERS[status],
  },
  content: {
    [PROBLEM_MEDIA_TYPE]: {
      schema: {
        allOf: [
          { $ref: "#/components/schemas/Problem" },
          {
            type: "object",
            properties: { status: { const: Number(status) }, code: { enum: codes } },
          },
        ],
      },
      examples: Object.fromEntries(
        codes.map((code) => [code, { $ref: `#/components/examples/${code}` }]),
      ),
    },
  },
});

const RETRY_AFTER = { "Retry-After": { $ref: "#/components/headers/RetryAfter" } };
const HEADERS: Readonly<Record<string, object>> = {
  401: { "WWW-Authenticate": { $ref: "#/components/headers/Challenge" }, ...RETRY_AFTER },
  429: RETRY_AFTER,
  503: RETRY_AFTER,
};

export const PROBLEM_HEADERS = {
  RequestId: {
    description: "The request's name in the relay's log.",
    schema: { type: "string" },
    example: REQUEST_ID,
  },
  Challenge: {
    description: "How to authenticate (RFC 6750).",
    schema: { type: "string", const: "Bearer" },
    example: "Bearer",
  },
  RetryAfter: {
    description: "Seconds. With 401 only if that failure locked the address out.",
    schema: { type: "integer", minimum: 1 },
    example: 600,
  },
};

/** One example for every code that occurs in REST, as Example Objects by code. */
export const problemExamples = (): Record<string, { summary: string; value: Problem }> =>
  Object.fromEntries(
    (Object.keys(ERRORS) as ErrorCode[])
      .filter((code) => ERRORS[code].http !== null)
      .map((code) => [code, { summary: ERRORS[code].meaning, value: example(code) }]),
  );

const example = (code: ErrorCode): Problem => ({
  type: `urn:blindrelay:error:${code}`,
  title: ERRORS[code].meaning,
  status: ERRORS[code].http ?? 500,
  detail: ERRORS[code].meaning,
  code,
  request_id: REQUEST_ID,
  ...(code === "VALIDATION_FAILED"
    ? { errors: [{ path: "/name", in: "body", message: "must be string" }] }
    : {}),
});
