/**
 * What JSON can say and the relay could not give back as it was said: U+0000, which PostgreSQL's
 * texts cannot hold, and numbers that are others, or none, once they have been read.
 */
import { canonicalNumber, numbersIn } from "@blindrelay/protocol/numbers";
import type { Problem } from "@blindrelay/protocol/schema/rest";

type Errors = NonNullable<Problem["errors"]>;

/** Longer than any number that a program writes. */
const MAX_NUMBER_LENGTH = 64;
/** So many errors say enough. */
const MAX_ERRORS = 10;

interface Place {
  readonly value: unknown;
  readonly name: string;
  readonly above: Place | null;
}

/** What is wrong with a body, of which `value` was read; none: nothing. */
export const unfaithful = (text: string, value: unknown): Errors => [
  ...(text.includes("\\u0000") ? nulIn(value) : []),
  ...unlike(text),
];

const unlike = (text: string): Errors =>
  numbersIn(text)
    .filter(({ token }) => !isFaithful(token))
    .slice(0, MAX_ERRORS)
    .map(({ token }) => ({
      path: "",
      in: "body" as const,
      message: `the number ${token.slice(0, 40)} cannot be kept as it is written: send it as a text`,
    }));

/** C programs write 17 digits of a double, more than the shortest that mean the same one. */
const isFaithful = (token: string): boolean => {
  if (token.length > MAX_NUMBER_LENGTH) return false;
  const value = Number(token);
  const isSame = (written: string): boolean => canonicalNumber(token) === canonicalNumber(written);
  return isSame(String(value)) || (!Number.isInteger(value) && isSame(value.toPrecision(17)));
};

/** Without recursion: a body may be nested more deeply than a stack. */
const nulIn = (body: unknown): Errors => {
  const errors: Errors = [];
  const places: Place[] = [{ value: body, name: "", above: null }];
  for (let place = places.pop(); place !== undefined; place = places.pop()) {
    const { value } = place;
    if (errors.length >= MAX_ERRORS) break;
    if (place.name.includes("\0") || (typeof value === "string" && value.includes("\0"))) {
      const path = pathOf(place);
      errors.push({ path, in: "body", message: "must not contain the character U+0000" });
    }
    if (typeof value !== "object" || value === null) continue;
    for (const [name, inner] of Object.entries(value)) {
      places.push({ value: inner, name, above: place });
    }
  }
  return errors;
};

/** A JSON pointer. */
const pathOf = (place: Place): string => {
  const names: string[] = [];
  for (let at: Place | null = place; at?.above != null; at = at.above) {
    names.push(at.name.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("\0", "\\u0000"));
  }
  return names.length === 0 ? "" : `/${names.reverse().join("/")}`;
};
