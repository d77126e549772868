/**
 * `/api/openapi.json`: the schemas of the routes (collected by @fastify/swagger), completed with
 * the problems that hooks and handlers may answer. Nothing is described twice, so nothing can
 * disagree.
 */
import { STATUS_CODES } from "node:http";
import { WSS_PATH } from "@blindrelay/protocol";
import * as rest from "@blindrelay/protocol/schema/rest";
import swagger from "@fastify/swagger";
import type { RouteOptions } from "fastify";
import { type Access, accessOf } from "../base/access.ts";
import type { App } from "../base/context.ts";
import { exampleOf, type JsonSchema } from "./example.ts";
import { PROBLEM_HEADERS, problemExamples, problemResponses, problemsOf } from "./problems.ts";
import { SCHEMES, securityOf, TAGS, tagOf } from "./words.ts";

interface Parameter {
  name: string;
  required?: boolean;
  description?: string;
  schema: JsonSchema;
  example?: unknown;
}

/** An operation as written by swagger, as far as it is used here. */
interface Operation {
  operationId?: string;
  summary?: string;
  tags?: string[];
  security?: object[];
  parameters?: Parameter[];
  requestBody?: { required: boolean; content: Record<string, Media> };
  responses: Record<
    string,
    { description: string; headers?: object; content?: Record<string, Media> }
  >;
}
interface Media {
  schema?: JsonSchema;
  example?: unknown;
  examples?: unknown;
}
type Paths = Record<string, Record<string, Operation>>;

export interface OpenapiDocument {
  openapi: string;
  info: object;
  tags: { name: string; description: string }[];
  paths: Paths;
  components: Record<string, Record<string, object>>;
}

const DESCRIPTION = `The control plane of a blindrelay: accounts, agents, releases and administration.
What agents and clients say to each other goes over \`${WSS_PATH}\`, sealed end to end, and is described in [asyncapi.json](asyncapi.json).

Every error is a problem document (RFC 9457) whose \`code\` is stable. Every \`GET\` also answers \`HEAD\`.
A path that exists but not with the method asked for answers 405 with \`Allow\`.`;

/** Collects the routes that are registered after it; call `document()` once the server is ready. */
export const collectRoutes = (app: App, version: string): (() => OpenapiDocument) => {
  const routes = new Map<string, RouteOptions>();
  app.register(swagger, {
    convertConstToEnum: false, // as the contract writes it
    openapi: {
      openapi: "3.1.1",
      info: { title: "blindrelay", version, description: DESCRIPTION, license: LICENSE },
      servers: [{ url: "/", description: "This relay" }],
    },
    transform: ({ schema, url, route }) => {
      for (const method of [route.method].flat()) {
        routes.set(`${method.toLowerCase()} ${pathOf(url)}`, route);
      }
      return { schema: schema ?? {}, url };
    },
  });
  let made: OpenapiDocument | null = null;
  return () => {
    made ??= complete(app.swagger() as unknown as OpenapiDocument, routes);
    return made;
  };
};

/** The text that swagger uses if a schema has no description. */
const SWAGGER_DEFAULT = "Default Response";

const LICENSE = { name: "MIT", identifier: "MIT" };

/** `/agents/:agent_id` as `/agents/{agent_id}`. */
const pathOf = (url: string): string => url.replace(/:(\w+)/g, "{$1}");

const complete = (
  document: OpenapiDocument,
  routes: ReadonlyMap<string, RouteOptions>,
): OpenapiDocument => {
  for (const [path, operations] of Object.entries(document.paths)) {
    for (const [method, operation] of Object.entries(operations)) {
      const route = routes.get(`${method} ${path}`);
      if (route === undefined) throw new Error(`no route behind ${method} ${path}`);
      completeOperation(operation, method, path, route);
    }
  }
  const paths = shared(document.paths) as Paths;
  return {
    ...document,
    tags: TAGS,
    paths,
    components: {
      schemas: componentSchemas(paths) as Record<string, object>,
      securitySchemes: SCHEMES,
      headers: PROBLEM_HEADERS,
      examples: problemExamples(),
    },
  };
};

const completeOperation = (
  operation: Operation,
  method: string,
  path: string,
  route: RouteOptions,
): void => {
  const access: Access | null = accessOf(route.onRequest);
  operation.operationId ??= operationId(method, path);
  operation.tags ??= [tagOf(path)];
  operation.security = securityOf(access);
  const { requestBody, responses, parameters = [] } = operation;
  if (requestBody !== undefined) {
    for (const media of Object.values(requestBody.content)) {
      requestBody.required &&= !mayBeAbsent(media.schema);
      if (media.schema !== undefined) media.schema = withoutUndefined(media.schema);
    }
  }
  for (const part of [requestBody, ...Object.values(responses)]) {
    for (const [type, media] of Object.entries(part?.content ?? {})) {
      if (!type.includes("json") || media.schema === undefined) continue;
      if (media.example === undefined && media.examples === undefined) {
        media.example = exampleOf(media.schema);
      }
    }
  }
  for (const parameter of parameters) {
    if (parameter.required === true) parameter.example ??= exampleOf(parameter.schema);
    else describeExample(parameter);
  }
  for (const [status, answer] of Object.entries(responses)) {
    const requestId = { $ref: "#/components/headers/RequestId" };
    answer.headers = { ...answer.headers, "X-Request-Id": requestId };
    if (answer.description === SWAGGER_DEFAULT) answer.description = STATUS_CODES[status] ?? "";
  }
  Object.assign(responses, problemResponses(problemsOf(route, access)));
};

/**
 * A page for trying things out prefills examples, and an unintended filter hides results. So
 * optional parameters have no example, but their description contains it.
 */
const describeExample = (parameter: Parameter): void => {
  const { examples, ...schema } = parameter.schema;
  const example = parameter.example ?? examples?.[0];
  parameter.schema = schema;
  delete parameter.example;
  const words = parameter.description ?? schema.description;
  parameter.description = [words, example === undefined ? null : `Example: \`${example}\`.`]
    .filter((part) => typeof part === "string")
    .join(" ");
};

/** `POST /api/v1/agents/{agent_id}/rotate-token` as `postAgentsByAgentIdRotateToken`. */
const operationId = (method: string, path: string): string =>
  `${method}/${path.replace(/^\/api(\/v\d+)?/, "")}`
    .replace(/\{(\w+)\}/g, "by/$1")
    .replace(/(?<![^A-Za-z0-9])[^A-Za-z0-9]+(\w)/g, (_all, letter: string) => letter.toUpperCase());

/** An optional body is a union with `undefined`, which JSON Schema does not have. */
const mayBeAbsent = (schema: JsonSchema | undefined): boolean =>
  schema?.anyOf?.some(({ type }) => type === "undefined") ?? false;

const withoutUndefined = (schema: JsonSchema): JsonSchema =>
  mayBeAbsent(schema)
    ? { ...schema, anyOf: (schema.anyOf ?? []).filter(({ type }) => type !== "undefined") }
    : schema;

// ---- one definition for what several operations share

/** Without TypeBox's additions, in swagger's form, so that both can be compared. */
const plain = (schema: object): JsonSchema => {
  const text = JSON.stringify(schema, (key, value) =>
    key === "$id" ? undefined : value?.patternProperties === undefined ? value : openRecord(value),
  );
  return JSON.parse(text) as JsonSchema;
};

const openRecord = ({ patternProperties, ...schema }: JsonSchema): object => ({
  ...schema,
  additionalProperties: Object.values(patternProperties as object)[0],
});

/** The same text for the same schema, regardless of the order of its members. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_key, part: unknown) =>
    typeof part === "object" && part !== null && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );

/** The contract's named object schemas as plain JSON Schema. Leaves are not shared. */
const NAMED: readonly (readonly [name: string, schema: JsonSchema])[] = Object.entries(rest)
  .filter(([name, value]) => /^[A-Z][a-z]/.test(name) && typeof value === "object")
  .map(([name, value]) => [name, plain(value as object)] as const)
  .filter(([, schema]) => schema.type === "object");

const NAME_OF: ReadonlyMap<string, string> = new Map(
  NAMED.map(([name, schema]) => [canonical(schema), name]),
);

/** A copy in which every named schema is a reference, except the value itself if `whole`. */
const shared = (value: unknown, whole = false): unknown => {
  if (typeof value !== "object" || value === null) return value;
  if (Array.isArray(value)) return value.map((item) => shared(item));
  const name = whole || !("type" in value) ? undefined : NAME_OF.get(canonical(value));
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` };
  return Object.fromEntries(Object.entries(value).map(([key, part]) => [key, shared(part)]));
};

/** The named schemas that `paths`, or other named schemas, refer to. */
const componentSchemas = (paths: unknown): Record<string, unknown> => {
  const schemas = NAMED.map(([name, schema]) => [name, shared(schema, true)] as const);
  const used = JSON.stringify([paths, schemas]);
  return Object.fromEntries(
    schemas.filter(([name]) => used.includes(`"#/components/schemas/${name}"`)),
  );
};
