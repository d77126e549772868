import { expect, it } from "vitest";
import { ERRORS } from "../errors.ts";
import { authFailure, LOCKED_OUT, LOST, linkFailure, REFUSED, RESTARTING } from "./failures.ts";

it("a login that fails for no known reason is refused", () => {
  for (const code of [null, "", "NEWER_THAN_THIS", "toString"]) {
    expect(authFailure(code)).toBe(REFUSED);
  }
  expect(authFailure("LOCKED_OUT")).toBe(LOCKED_OUT);
  expect(authFailure("RESTARTING")).toBe(RESTARTING);
});

it("an error ends a link if its code closes it, except the announcement of a restart", () => {
  const codes = Object.entries(ERRORS);
  const ending = codes.flatMap(([code]) => (linkFailure(code) === null ? [] : [code]));
  const closing = codes.flatMap(([code, { close }]) => (close === null ? [] : [code]));
  expect(ending).toEqual(closing.filter((code) => code !== "RESTARTING"));
  expect(linkFailure("AUTH_TIMEOUT")).toBe(LOST);
  for (const code of ["RESTARTING", "RATE_LIMITED", "toString", ""])
    expect(linkFailure(code)).toBe(null);
});
