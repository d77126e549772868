/** A request's cost grows with its length, and a query's text has one meaning. */
import * as rest from "@blindrelay/protocol/schema/rest";
import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import fc from "fast-check";
import type { TObject } from "typebox";
import { describe, expect, it } from "vitest";
import { type InvalidRequest, validatorCompiler } from "./validation.ts";

type AgentQuery = rest.AgentQuery;

const listOf = <T>(n: number, item: (at: number) => T): T[] =>
  Array.from({ length: n }, (_, at) => item(at));

const HOSTILE: { readonly [what: string]: (n: number) => unknown } = {
  "a list of the same": (n) => listOf(n, () => 1),
  "a list of objects": (n) => listOf(n, () => ({})),
  "an object of many names": (n) => Object.fromEntries(listOf(n, (at) => [`k${at}`, 1])),
};

const objects = Object.values<unknown>(rest).filter(
  (schema): schema is TObject =>
    typeof schema === "object" && schema !== null && "properties" in schema,
);

it.each(Object.keys(HOSTILE))("%s is checked in linear time, wherever it stands", (what) => {
  expect(objects.length).toBeGreaterThan(20);
  const make = HOSTILE[what] as (n: number) => unknown;
  const grown = growth(1_000, (n) => {
    const value = make(n);
    const checks = objects.map((schema) => {
      const check = validatorCompiler({ schema, httpPart: "body", method: "", url: "" });
      const body = Object.fromEntries(Object.keys(schema.properties).map((name) => [name, value]));
      return () => check(body);
    });
    return () => {
      for (const check of checks) check();
    };
  });
  expect(grown).toBeLessThan(LINEAR);
});

describe("of a query", () => {
  const { AgentQuery } = rest;
  const check = validatorCompiler({
    schema: AgentQuery,
    httpPart: "querystring",
    method: "",
    url: "",
  });
  const outcome = (query: object) => check(query) as { value?: AgentQuery; error?: InvalidRequest };

  it("an integer and a boolean are written as JSON writes them", () => {
    for (const limit of [1, 7, 50, 200])
      expect(outcome({ limit: `${limit}` })).toEqual({ value: { limit } });
    for (const online of [true, false])
      expect(outcome({ online: `${online}` })).toEqual({ value: { online } });
    expect(outcome({ name: "1", where: "true" })).toEqual({ value: { name: "1", where: "true" } });
  });

  it.each<[keyof AgentQuery, unknown]>([
    ...["1.5", "1.0", "1e1", " 5", "5 ", "0x10", "+1", "-1", "05", "", "1n", "true", "5\n"].map(
      (text): [keyof AgentQuery, unknown] => ["limit", text],
    ),
    ...["True", "TRUE", "1", "0", "yes", "", " true", "null"].map(
      (text): [keyof AgentQuery, unknown] => ["online", text],
    ),
    ["limit", ["5", "5"]],
    ["online", ["true", "true"]],
    ["name", ["a", "b"]],
  ])("%s=%j is refused", (name, text) => {
    const { errors } = outcome({ [name]: text }).error as InvalidRequest;
    expect(errors).toMatchObject([{ path: `/${name}`, in: "querystring" }]);
  });

  it("no other text is a number or a boolean", () => {
    const canonical = /^(0|[1-9][0-9]*)$/;
    fc.assert(
      fc.property(fc.stringMatching(/^[-+ 0-9a-fxXeEnb._]{0,6}$/), (text) => {
        const number = canonical.test(text) ? Number(text) : Number.NaN;
        const isValid = number >= 1 && number <= 200;
        expect(outcome({ limit: text }).value?.limit).toBe(isValid ? number : undefined);
      }),
    );
  });
});
