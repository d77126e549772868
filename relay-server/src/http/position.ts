/** Cursors of lists in order of time: opaque to callers, inside them where a page ended. */
import { HttpProblem } from "./problem.ts";

export interface Position {
  readonly at: number;
  readonly id: string;
}

export const writePosition = (at: number, id: string): string =>
  Buffer.from(`${at}/${id}`).toString("base64url");

/** Throws a 422 for what is no cursor. */
export const readPosition = (cursor: string): Position => {
  const match = /^([0-9]{1,15})\/([A-Za-z0-9_-]{1,64})$/.exec(
    Buffer.from(cursor, "base64url").toString(),
  );
  if (match === null) {
    throw new HttpProblem("VALIDATION_FAILED", "That is no cursor of this list.", {
      errors: [{ path: "/cursor", in: "querystring", message: "must be a next_cursor" }],
    });
  }
  return { at: Number(match[1]), id: match[2] as string };
};
