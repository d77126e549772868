/** A request's cost grows with its length, whatever its list or object holds. */
import * as rest from "@blindrelay/protocol/schema/rest";
import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import type { TObject } from "typebox";
import { expect, it } from "vitest";
import { validatorCompiler } from "./validation.ts";

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
