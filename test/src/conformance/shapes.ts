/** Values of a JSON Schema for fast-check, and values that nearly match it. */
import * as fc from "fast-check";
import type { Json } from "./document.ts";

/** Known values by the name of their member: a valid password, an own agent. */
export type Known = Readonly<Record<string, readonly unknown[]>>;

const DAY_MS = 86_400_000;
/** What people and attackers write in text fields. */
const ODD_TEXT = fc.constantFrom(
  "",
  " ",
  "\u0000",
  "../../etc/passwd",
  "a\nb",
  "ünï🙂",
  "\ud800",
  "'; drop table users; --",
  "__proto__",
  "x".repeat(300),
);
const ODD_VALUE: fc.Arbitrary<unknown> = fc.oneof(
  fc.constantFrom<unknown>(null, true, 0, -1, 1e308, 0.5, "", [], {}, [null], { a: { b: [] } }),
  ODD_TEXT,
  fc.jsonValue({ maxDepth: 3 }),
);

/** Values that a schema permits. Known ones are preferred if they are permitted too. */
export const shaped = (schema: Json, known: Known, name = ""): fc.Arbitrary<unknown> => {
  const own = name === "" ? undefined : known[name];
  const plain = plainOf(schema, known);
  return own === undefined || own.length === 0
    ? plain
    : fc.oneof({ weight: 4, arbitrary: fc.constantFrom(...own) }, { weight: 1, arbitrary: plain });
};

const plainOf = (schema: Json, known: Known): fc.Arbitrary<unknown> => {
  if ("const" in schema) return fc.constant(schema.const);
  if (Array.isArray(schema.enum)) return fc.constantFrom(...schema.enum);
  const options = schema.anyOf ?? schema.oneOf;
  if (Array.isArray(options)) return fc.oneof(...options.map((one) => shaped(one, known)));
  switch (schema.type) {
    case "null":
      return fc.constant(null);
    case "boolean":
      return fc.boolean();
    case "integer":
    case "number": {
      const { minimum: min = -(2 ** 31), maximum: max = 2 ** 31 } = schema;
      return schema.type === "integer"
        ? fc.integer({ min: Math.ceil(min), max: Math.floor(max) })
        : fc.double({ min, max, noNaN: true });
    }
    case "string":
      return textOf(schema);
    case "array": {
      const { minItems: minLength = 0, maxItems: maxLength = 4, items = {} } = schema;
      return fc.array(shaped(items, known), { minLength, maxLength });
    }
    case "object":
      return objectOf(schema, known);
    default:
      return fc.jsonValue({ maxDepth: 2 });
  }
};

const textOf = (schema: Json): fc.Arbitrary<string> => {
  if (schema.format === "date-time") {
    return fc.integer({ min: 0, max: 40_000 }).map((day) => new Date(day * DAY_MS).toISOString());
  }
  const { minLength = 0, maxLength, pattern } = schema;
  if (pattern === undefined) {
    return fc
      .string({ minLength, maxLength: maxLength ?? 64, unit: "grapheme" })
      .filter((text) => text.length <= (maxLength ?? Number.POSITIVE_INFINITY));
  }
  const text = fc.stringMatching(new RegExp(pattern));
  // A pattern usually determines the length; otherwise the value is cut to the required one.
  return text.map((some) => (maxLength === undefined ? some : some.slice(0, maxLength)));
};

const objectOf = (schema: Json, known: Known): fc.Arbitrary<object> => {
  const parts = Object.fromEntries(
    Object.entries((schema.properties ?? {}) as Json).map(([name, part]) => [
      name,
      shaped(part, known, name),
    ]),
  );
  const requiredKeys = (schema.required ?? []) as never[];
  const members = fc.record(parts, { requiredKeys });
  const open = schema.additionalProperties;
  if (open === undefined || open === false || Object.keys(parts).length > 0) return members;
  return fc.dictionary(fc.string({ maxLength: 12 }), shaped(open, known), { maxKeys: 4 });
};

/** A value with one change; it may still be permitted. */
export const nearly = (value: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.tuple(value, fc.nat(), fc.nat(4), ODD_VALUE, ODD_TEXT).map(([whole, at, how, odd, name]) => {
    if (typeof whole !== "object" || whole === null || Array.isArray(whole)) return odd;
    const entries = Object.entries(whole);
    const index = at % Math.max(1, entries.length);
    if (how === 0) return odd;
    if (how === 1) return Object.fromEntries(entries.toSpliced(index, 1));
    if (how === 2) return Object.fromEntries([...entries, [name, odd]]);
    return Object.fromEntries(entries.map(([key, part], i) => [key, i === index ? odd : part]));
  });

export const oddText: fc.Arbitrary<string> = fc.oneof(
  ODD_TEXT,
  fc.string({ unit: "binary", maxLength: 40 }),
);
