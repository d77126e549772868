/**
 * Both documents: valid according to independent validators, complete, and with correct examples.
 */
import asyncapi from "@asyncapi/specs";
import { MESSAGES } from "@blindrelay/protocol/schema";
import { Validator } from "@seriousme/openapi-schema-validator";
import { Ajv } from "ajv";
import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Rest, startRest } from "../testing/test-rest.ts";
import { TAGS } from "./words.ts";

// biome-ignore lint/suspicious/noExplicitAny: documents are walked as what they are, JSON
type Json = any;

let rest: Rest;
let openapi: Json;
let operations: { name: string; operation: Json }[];
beforeAll(async () => {
  rest = await startRest();
  openapi = (await rest.app.inject("/api/openapi.json")).json();
  operations = Object.entries(openapi.paths as Json).flatMap(([path, methods]) =>
    Object.entries(methods as Json).map(([method, operation]) => ({
      name: `${method} ${path}`,
      operation,
    })),
  );
});
afterAll(() => rest.close());

/** A checker for the document's own schemas, using an independent validator. */
const checker = () => {
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
  ajv.addSchema(openapi, "openapi");
  return (pointer: string[], value: unknown): string | null => {
    const path = pointer.map((part) =>
      encodeURIComponent(part.replaceAll("~", "~0").replaceAll("/", "~1")),
    );
    const check = ajv.getSchema(`openapi#/${path.join("/")}`);
    if (check === undefined) return "no such schema";
    return check(value) === true ? null : ajv.errorsText(check.errors);
  };
};

describe("/api/openapi.json", () => {
  test("is OpenAPI 3.1, by an independent validator", async () => {
    expect(openapi.openapi).toMatch(/^3\.1\./);
    const { valid, errors } = await new Validator().validate(structuredClone(openapi));
    expect(errors).toBeUndefined();
    expect(valid).toBe(true);
    const broken = structuredClone(openapi);
    broken.paths["/health"].get.responses = [];
    expect((await new Validator().validate(broken)).valid).toBe(false);
  });

  test("every operation has a unique name, a summary, a group and its credentials", () => {
    const ids = operations.map(({ operation }) => operation.operationId);
    expect(new Set(ids).size).toBe(ids.length);
    const groups = TAGS.map(({ name }) => name);
    for (const { name, operation } of operations) {
      expect(operation.operationId, name).toMatch(/^[a-z][A-Za-z0-9]+$/);
      expect(operation.summary, `${name}: write schema.summary`).toMatch(/^\S.{3,}/);
      expect(operation.tags.length, name).toBe(1);
      expect(groups, `${name}: describe its group in words.ts`).toContain(operation.tags[0]);
      for (const need of operation.security) {
        for (const scheme of Object.keys(need)) {
          expect(openapi.components.securitySchemes).toHaveProperty(scheme);
        }
      }
    }
  });

  test("every example is valid: of bodies, responses, parameters and problems", () => {
    const check = checker();
    const wrong: string[] = [];
    let checked = 0;
    const look = (pointer: string[], media: Json) => {
      const examples = [
        ...("example" in media ? [media.example] : []),
        ...Object.entries((media.examples ?? {}) as Json).map(([code, example]: Json) =>
          example.$ref === undefined ? example.value : openapi.components.examples[code].value,
        ),
      ];
      if (examples.length === 0) wrong.push(`${pointer.join(" ")}: no example`);
      for (const example of examples) {
        const problem = check([...pointer, "schema"], example);
        if (problem !== null) wrong.push(`${pointer.join(" ")}: ${problem}`);
        checked += 1;
      }
    };
    for (const { name, operation } of operations) {
      const [method = "", path = ""] = name.split(" ");
      const at = ["paths", path, method];
      for (const [type, media] of Object.entries((operation.requestBody?.content ?? {}) as Json)) {
        if (type.includes("json")) look([...at, "requestBody", "content", type], media);
      }
      (operation.parameters ?? []).forEach((parameter: Json, index: number) => {
        if (parameter.required !== true) return;
        look([...at, "parameters", String(index)], parameter);
      });
      for (const [status, response] of Object.entries(operation.responses as Json)) {
        for (const [type, media] of Object.entries(((response as Json).content ?? {}) as Json)) {
          if (type.includes("json")) look([...at, "responses", status, "content", type], media);
        }
      }
    }
    expect(wrong).toEqual([]);
    expect(checked).toBeGreaterThan(100);
  });

  test("nothing optional is prefilled when somebody tries it out", () => {
    let optional = 0;
    for (const { name, operation } of operations) {
      for (const parameter of (operation.parameters ?? []) as Json[]) {
        if (parameter.required === true) continue;
        optional += 1;
        const filled = [parameter.example, parameter.schema.example, parameter.schema.examples];
        expect(filled, `${name}: ${parameter.name}`).toEqual([undefined, undefined, undefined]);
      }
    }
    expect(optional).toBeGreaterThan(10);
    const { parameters } = openapi.paths["/api/v1/agents"].get;
    const version = parameters.find(({ name }: Json) => name === "firmware_version");
    expect(version.description).toMatch(/Example: `\S+`/);
  });

  test("operations with credentials list 401, 403 and 429; those with a body 413 and 415", () => {
    for (const { name, operation } of operations) {
      const statuses = Object.keys(operation.responses);
      expect(statuses, name).toContain("500");
      if (operation.security.length > 0) {
        expect(statuses, name).toEqual(expect.arrayContaining(["401", "403", "429"]));
      }
      if (!name.startsWith("get")) {
        expect(statuses, name).toEqual(expect.arrayContaining(["400", "413", "415"]));
      }
      expect(Object.keys(operation.responses).some((status) => status < "300")).toBe(true);
    }
    const { get, post } = openapi.paths["/api/v1/agents"];
    const [account, login, key] = [{ account: [] }, { login: [] }, { key: [] }];
    expect(get.security).toEqual([account, login, { client_session: [] }, key]);
    expect(post.security).toEqual([account, login, key]);
    expect(post.responses["409"].content["application/problem+json"].examples).toHaveProperty(
      "CONFLICT",
    );
  });

  test("shared schemas are written once, and an optional body is optional", () => {
    const text = JSON.stringify(openapi.paths["/api/v1/agents"].get.responses["200"]);
    expect(text).toContain('"$ref":"#/components/schemas/AgentPage"');
    expect(openapi.components.schemas.AgentPage.properties.items.items).toEqual({
      $ref: "#/components/schemas/Agent",
    });
    expect(openapi.paths["/api/v1/auth/totp/enroll"].post.requestBody.required).toBe(false);
    expect(openapi.paths["/api/v1/agents"].post.requestBody.required).toBe(true);
  });
});

describe("/api/asyncapi.json", () => {
  let document: Json;
  beforeAll(async () => {
    document = (await rest.app.inject("/api/asyncapi.json")).json();
  });

  test("is AsyncAPI 3.0, by its official schema", () => {
    const ajv = new Ajv({ strict: false, allErrors: true, validateSchema: false, meta: false });
    (addFormats as unknown as (ajv: Ajv) => void)(ajv);
    const check = ajv.compile((asyncapi as Json).schemas["3.0.0"]);
    expect(check(document), ajv.errorsText(check.errors)).toBe(true);
    const broken = structuredClone(document);
    broken.operations.receiveAuth.action = "shout";
    expect(check(broken)).toBe(false);
  });

  test("every message has its direction and an example that matches its schema", () => {
    expect(Object.keys(document.components.messages)).toEqual(Object.keys(MESSAGES));
    const ajv = new Ajv2020({ strict: false });
    (addFormats as unknown as (ajv: Ajv2020) => void)(ajv);
    for (const [name, { from }] of Object.entries(MESSAGES)) {
      const { payload, examples } = document.components.messages[name];
      expect(examples.length, name).toBeGreaterThan(0);
      const check = ajv.compile(payload);
      for (const example of examples) expect(check(example.payload), name).toBe(true);
      const ref = `#/channels/link/messages/${name}`;
      const actions = Object.values(document.operations as Json)
        .filter((operation: Json) => operation.messages[0].$ref === ref)
        .map((operation: Json) => operation.action);
      const expected = { peer: ["receive"], relay: ["send"], both: ["receive", "send"] }[from];
      expect(actions, name).toEqual(expected);
    }
  });

  test("names the server as the caller reached it", async () => {
    const asked = await rest.app.inject({
      url: "/api/asyncapi.json",
      headers: { host: "relay.example:8443" },
    });
    expect(asked.json().servers.relay).toMatchObject({
      host: "relay.example:8443",
      protocol: "ws",
    });
  });
});
