/** Of what several REST resources' schemas are made. */
import { type TSchema, Type } from "typebox";

export const Nullable = <T extends TSchema>(type: T) => Type.Union([type, Type.Null()]);

/** Without control characters. */
export const PlainText = (maxLength: number, description: string, example: string) =>
  Type.String({
    minLength: 1,
    maxLength,
    pattern: "^[^\\u0000-\\u001f\\u007f]*$",
    description,
    examples: [example],
  });
