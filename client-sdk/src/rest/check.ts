/** Checks answers against their schemas, which are loaded while the relay works on the first. */
import type { TSchema } from "typebox";
import type { AnswerName } from "./rest.ts";

export const check = async (name: AnswerName, value: unknown): Promise<string | null> => {
  const [schemas, { Check, Errors }] = await Promise.all([
    import("@blindrelay/protocol/schema/rest"),
    import("typebox/schema"),
  ]);
  const schema = schemas[name] as TSchema | undefined;
  if (schema === undefined) {
    throw new TypeError(`no schema of @blindrelay/protocol/schema/rest is called ${name}`);
  }
  if (Check(schema, value)) return null;
  const [, [first]] = Errors(schema, value);
  return `${first?.instancePath || "the whole"} ${first?.message ?? "is invalid"}`;
};
