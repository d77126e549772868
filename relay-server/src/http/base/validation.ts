/** Validates requests with the schemas of the contract (TypeBox). */
import type { Problem } from "@blindrelay/protocol/schema/rest";
import type { FastifySchemaCompiler } from "fastify";
import type { TSchema } from "typebox";
import { Compile } from "typebox/compile";
import { Value } from "typebox/value";

/** A malformed request, with all its errors. */
export class InvalidRequest extends Error {
  readonly errors: NonNullable<Problem["errors"]>;

  constructor(errors: NonNullable<Problem["errors"]>) {
    super("invalid request");
    this.errors = errors;
  }
}

export const validatorCompiler: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const compile = () => Compile(schema);
  let check: ReturnType<typeof compile> | undefined;
  const part = httpPart ?? "body";
  return (given: unknown) => {
    // Only bodies have types of their own; everything else arrives as text.
    const value = part === "body" ? given : Value.Convert(schema, given);
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
