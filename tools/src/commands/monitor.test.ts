/** What Enter sends, and what an echo shows. */
import { expect, it } from "vitest";
import { asEcho, withEol } from "./monitor.ts";

it.each([
  ["cr", "LAMP 1\r"],
  ["lf", "LAMP 1\n"],
  ["crlf", "LAMP 1\r\n"],
] as const)("Enter is %s", (eol, sent) => {
  expect(withEol(Buffer.from("LAMP 1\r"), eol).toString()).toBe(sent);
});

it("other bytes are sent as they are typed", () => {
  const typed = Buffer.from([0, 3, 10, 127, 128, 255]);
  expect(withEol(typed, "crlf")).toEqual(typed);
});

it("an echo begins a new line at Enter, and removes what is deleted", () => {
  expect(asEcho(Buffer.from("ab\x7f\r"))).toBe("ab\b \b\r\n");
});
