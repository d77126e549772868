/**
 * Pages of chronological lists, and their cursors: opaque to callers, they contain the position at
 * which a page ended.
 */
import type { Position } from "../../store/keyset.ts";
import { HttpProblem } from "./problem.ts";

export const writePosition = ({ at, id }: Position): string =>
  Buffer.from(`${at}/${id}`).toString("base64url");

/** Null if there is no cursor. Throws a 422 if it is not a cursor. */
export const readPosition = (cursor: string | undefined): Position | null => {
  if (cursor === undefined) return null;
  const match = /^([0-9]{1,15})\/([A-Za-z0-9_-]{1,64})$/.exec(
    Buffer.from(cursor, "base64url").toString(),
  );
  if (match === null) {
    throw new HttpProblem("VALIDATION_FAILED", "That is not a cursor of this list.", {
      errors: [{ path: "/cursor", in: "querystring", message: "must be a next_cursor" }],
    });
  }
  return { at: Number(match[1]), id: match[2] as string };
};

/** A page of up to `limit` rows; one more was requested, to see whether more follow. */
export const cutPage = <Row extends { readonly id: string }>(
  found: readonly Row[],
  limit: number,
  timeOf: (row: Row) => number,
): { rows: Row[]; nextCursor: string | null } => {
  const rows = found.slice(0, limit);
  const last = found.length > limit ? rows.at(-1) : undefined;
  const nextCursor = last === undefined ? null : writePosition({ at: timeOf(last), id: last.id });
  return { rows, nextCursor };
};
