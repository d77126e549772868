/** Builds an example for a schema from the examples of its parts. */

/** JSON Schema, as far as our schemas use it. */
export interface JsonSchema {
  readonly [keyword: string]: unknown;
  readonly type?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly items?: JsonSchema;
  readonly anyOf?: readonly JsonSchema[];
  readonly examples?: readonly unknown[];
}

const PLAIN: Readonly<Record<string, unknown>> = {
  string: "text",
  integer: 1,
  number: 1,
  boolean: true,
  null: null,
};

/** A leaf without an example gets a plain one; a test checks that it is valid. */
export const exampleOf = (schema: JsonSchema): unknown => {
  if (schema.examples !== undefined && schema.examples.length > 0) return schema.examples[0];
  if ("example" in schema) return schema.example;
  if ("const" in schema) return schema.const;
  if (Array.isArray(schema.enum)) return schema.enum[0];
  if ("default" in schema) return schema.default;
  if (schema.anyOf !== undefined) {
    return exampleOf(schema.anyOf.find(({ type }) => type !== "null") ?? {});
  }
  if (schema.type === "array") return schema.items === undefined ? [] : [exampleOf(schema.items)];
  if (schema.type === "object") {
    const parts = Object.entries(schema.properties ?? {});
    return Object.fromEntries(parts.map(([name, part]) => [name, exampleOf(part)]));
  }
  return PLAIN[schema.type ?? "null"] ?? null;
};
