/** Validates requests with the schemas of the contract (TypeBox). */
import type { Problem } from "@blindrelay/protocol/schema/rest";
import type { FastifySchemaCompiler } from "fastify";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";

/** A malformed request, with all its errors. */
export class InvalidRequest extends Error {
  readonly errors: NonNullable<Problem["errors"]>;

  constructor(errors: NonNullable<Problem["errors"]>) {
    super("invalid request");
    this.errors = errors;
  }
}

/**
 * Text that stands for a value which is none: as JSON writes it, and nothing else that JavaScript
 * would read as one (`1.5`, `0x10`, `+1`, ` 5`, `True`).
 */
const WRITTEN: { readonly [type: string]: RegExp } = {
  integer: /^(0|[1-9][0-9]*)$/,
  boolean: /^(true|false)$/,
};

type Texts = Readonly<Record<string, unknown>>;

const valuesOf = (schema: TSchema, texts: Texts): Texts => {
  const { properties = {} } = schema as { properties?: Record<string, { type?: string }> };
  const values: Record<string, unknown> = { ...texts };
  for (const [name, { type = "" }] of Object.entries(properties)) {
    const text = texts[name];
    if (typeof text === "string" && WRITTEN[type]?.test(text)) values[name] = JSON.parse(text);
  }
  return values;
};

export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const compile = () => Compile(schema);
  let check: ReturnType<typeof compile> | undefined;
  const part = httpPart ?? "body";
  return (given: unknown) => {
    // Only bodies have types of their own; everything else arrives as text.
    const value = part === "body" ? given : valuesOf(schema, given as Texts);
    check ??= compile(); // on first use, as in serialization.ts
    if (check.Check(value)) return { value };
    const errors = check.Errors(value).map((error) => ({
      path: error.instancePath,
      in: part,
      message: error.message,
    }));
    return { error: new InvalidRequest(errors) };
  };
};
