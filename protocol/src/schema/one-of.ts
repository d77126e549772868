import { type TLiteral, type TSchemaOptions, type TUnion, Type } from "typebox";

/** One of these texts. */
export const OneOf = <const Names extends readonly string[]>(
  names: Names,
  options: TSchemaOptions = {},
) => {
  const literals = names.map((name) => Type.Literal(name));
  return Type.Union(literals, options) as unknown as TUnion<{
    -readonly [I in keyof Names]: TLiteral<Names[I]>;
  }>;
};
