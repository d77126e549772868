/**
 * The OpenAPI document as tests read it: the operations, and a validator that compares an answer
 * with the document. It uses ajv, which the relay does not.
 */
import { ERRORS, type ErrorCode, isErrorCode } from "@blindrelay/protocol";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";

// biome-ignore lint/suspicious/noExplicitAny: the document is traversed as plain JSON
export type Json = any;

export interface Operation {
  /** `POST /api/v1/agents` */
  readonly name: string;
  readonly method: string;
  readonly path: string;
  readonly parameters: readonly Parameter[];
  /** Media type -> schema, references resolved; null if the operation takes no body. */
  readonly bodies: Readonly<Record<string, Json>> | null;
  readonly bodyRequired: boolean;
  /** The kinds of credentials of which one is needed; empty if anyone may call. */
  readonly holders: readonly string[];
}

export interface Parameter {
  readonly in: "path" | "query" | "header";
  readonly name: string;
  readonly required: boolean;
  readonly schema: Json;
}

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: Buffer;
}

export interface Description {
  readonly operations: readonly Operation[];
  /** How an answer differs from the document; empty if it does not. */
  judge(operation: Operation, answer: Answer): string[];
  /** Whether the document permits a body, or a parameter's value. */
  allowsBody(operation: Operation, type: string, value: unknown): boolean;
}

const PROBLEM = "application/problem+json";

export const readDescription = (document: Json): Description => {
  const ajv = new Ajv2020({ strict: false, allErrors: true, validateSchema: false });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addSchema(document, "openapi");
  const validate = (pointer: readonly string[], value: unknown): string | null => {
    const path = pointer.map((part) =>
      encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")),
    );
    const check = ajv.getSchema(`openapi#/${path.join("/")}`);
    if (check === undefined) return `no schema at ${pointer.join(" ")}`;
    return check(value) === true ? null : ajv.errorsText(check.errors);
  };
  const resolve = (schema: Json): Json => resolved(document, schema);

  const operations = Object.entries(document.paths as Json).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, described]: [string, Json]): Operation => {
      const content = described.requestBody?.content as Json;
      return {
        name: `${method.toUpperCase()} ${path}`,
        method: method.toUpperCase(),
        path,
        parameters: (described.parameters ?? []).map((parameter: Json) => ({
          in: parameter.in,
          name: parameter.name,
          required: parameter.required ?? false,
          schema: resolve(parameter.schema),
        })),
        bodies:
          content === undefined
            ? null
            : Object.fromEntries(
                Object.entries(content).map(([type, media]: [string, Json]) => [
                  type,
                  resolve(media.schema ?? {}),
                ]),
              ),
        bodyRequired: described.requestBody?.required ?? false,
        holders: (described.security ?? []).flatMap((need: object) => Object.keys(need)),
      };
    }),
  );

  const at = ({ path, method }: Operation) => ["paths", path, method.toLowerCase()];

  return {
    operations,
    allowsBody: (operation, type, value) =>
      validate([...at(operation), "requestBody", "content", type, "schema"], value) === null,
    judge: (operation, { status, headers, body }) => {
      const faults: string[] = [];
      const described =
        document.paths[operation.path][operation.method.toLowerCase()].responses[String(status)];
      if (described === undefined) return [`${status} is not documented: ${body}`];
      if (status === 500) faults.push(`a fault of the relay: ${body}`);
      const requestId = headers["x-request-id"];
      if (typeof requestId !== "string") faults.push("no X-Request-Id");
      const type = String(headers["content-type"] ?? "").split(";")[0] ?? "";
      const content = described.content as Json;
      if (content === undefined) {
        if (body.length > 0) faults.push(`a body where none is documented: ${body}`);
        return faults;
      }
      if (!Object.hasOwn(content, type)) return [...faults, `${status} as ${type || "nothing"}`];
      if (!type.includes("json")) return faults;
      const value = parse(body);
      if (value === undefined) return [...faults, `no JSON: ${body}`];
      const pointer = [...at(operation), "responses", String(status), "content", type, "schema"];
      const wrong = validate(pointer, value);
      if (wrong !== null) faults.push(`${status} has another shape: ${wrong}: ${body}`);
      if (status >= 400) faults.push(...problemFaults(status, headers, type, value));
      return faults;
    },
  };
};

const problemFaults = (
  status: number,
  headers: Answer["headers"],
  type: string,
  problem: Json,
): string[] => {
  const faults: string[] = [];
  const expect = (holds: boolean, what: string) => {
    if (!holds) faults.push(`${what}: ${JSON.stringify(problem)}`);
  };
  expect(type === PROBLEM, "an error is no problem document");
  expect(problem.status === status, "the problem names another status");
  expect(
    isErrorCode(problem.code) && ERRORS[problem.code as ErrorCode].http === status,
    "no such code",
  );
  expect(problem.type === `urn:blindrelay:error:${problem.code}`, "the type is wrong");
  expect(problem.request_id === headers["x-request-id"], "the request ids differ");
  expect(status !== 401 || headers["www-authenticate"] === "Bearer", "401 without a challenge");
  expect(status !== 429 || Number(headers["retry-after"]) > 0, "429 without Retry-After");
  const shape = problem.code === "VALIDATION_FAILED";
  expect(!shape || (problem.errors ?? []).length > 0, "a wrong shape without errors[]");
  return faults;
};

const parse = (body: Buffer): unknown => {
  try {
    return JSON.parse(body.toString("utf8"));
  } catch {
    return undefined;
  }
};

/** A copy of a schema without references. */
const resolved = (document: Json, schema: Json): Json => {
  if (typeof schema !== "object" || schema === null) return schema;
  if (Array.isArray(schema)) return schema.map((part) => resolved(document, part));
  if (typeof schema.$ref === "string") {
    const target = schema.$ref
      .slice(2)
      .split("/")
      .reduce((part: Json, key: string) => part[key], document);
    return resolved(document, target);
  }
  return Object.fromEntries(
    Object.entries(schema).map(([key, part]) => [key, resolved(document, part)]),
  );
};
