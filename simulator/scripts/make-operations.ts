/**
 * Makes `src/msw/operations.generated.ts` from the relay's own OpenAPI document: the REST
 * operations with the schemas of their requests and an example of each answer. It is not committed:
 * `scripts/setup.mjs` and the package's build run this.
 */
import { renameSync, writeFileSync } from "node:fs";
import { startRest } from "@blindrelay/relay-server/testing";

interface Schema {
  $ref?: string;
  [keyword: string]: unknown;
}
interface Media {
  schema: Schema;
  example?: unknown;
}
interface Documented {
  operationId: string;
  security: Record<string, unknown>[];
  parameters?: { in: string; name: string; required?: boolean; schema: Schema }[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<string, { content?: Record<string, Media> }>;
}

const JSON_TYPE = "application/json";
/** The rest are documents and pages for people, and firmware. */
const WANTED = /^\/(health|api\/v1\/)/;
/** Keywords for readers that a validator does not need. */
const WORDS = new Set(["description", "examples", "example", "title", "default", "format"]);

const rest = await startRest();
const document = (await rest.app.inject("/api/openapi.json")).json();
await rest.close();

const operations = Object.entries(document.paths as Record<string, Record<string, Documented>>)
  .filter(([path]) => WANTED.test(path))
  .flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, one]) => operation(path, method, one) ?? []),
  );

const text = `/** Made by scripts/make-operations.ts from the relay's OpenAPI document. */
import type { Operation } from "./operation.ts";

export const OPERATIONS: readonly Operation[] = ${JSON.stringify(operations)};
`;
const target = new URL("../src/msw/operations.generated.ts", import.meta.url);
// Renamed, because a test may be reading the file that it replaces.
const draft = new URL(`operations.${process.pid}.log`, target);
writeFileSync(draft, text);
renameSync(draft, target);

function operation(path: string, method: string, one: Documented): object | null {
  const [status, answer] = Object.entries(one.responses).find(([code]) => code.startsWith("2")) as [
    string,
    { content?: Record<string, Media> },
  ];
  const body = one.requestBody?.content[JSON_TYPE];
  const media = answer.content?.[JSON_TYPE];
  const isOfJson = (one.requestBody === undefined || body !== undefined) && status !== "206";
  if (!isOfJson || (status !== "204" && media === undefined)) return null;
  const query = (one.parameters ?? []).filter((parameter) => parameter.in === "query");
  return {
    id: one.operationId,
    method,
    path: path.replaceAll(/\{(\w+)\}/g, ":$1"),
    credentials: one.security.flatMap((need) => Object.keys(need)),
    query: {
      type: "object",
      required: query.filter(({ required }) => required).map(({ name }) => name),
      properties: Object.fromEntries(query.map(({ name, schema }) => [name, plain(schema)])),
    },
    body:
      body === undefined
        ? null
        : { required: one.requestBody?.required === true, schema: plain(body.schema) },
    status: Number(status),
    answer: media?.example ?? null,
  };
}

/** A schema with its references resolved, and without descriptions. */
function plain(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(plain);
  if (typeof schema !== "object" || schema === null) return schema;
  const { $ref, ...own } = schema as Schema;
  if ($ref !== undefined) return plain(at($ref));
  return Object.fromEntries(
    Object.entries(own)
      .filter(([keyword, value]) => !WORDS.has(keyword) || isSchema(value))
      .map(([keyword, value]) => [keyword, plain(value)]),
  );
}

/** A property may have the name of a keyword. */
function isSchema(value: unknown): boolean {
  return typeof value === "object" && value !== null && "type" in value;
}

function at(pointer: string): unknown {
  return pointer
    .split("/")
    .slice(1)
    .reduce((part, name) => (part as Record<string, unknown>)[name] as object, document as object);
}
