import { expect, it } from "vitest";
import { wrapHelp } from "./command-line.ts";

const HELP = `
Example:
  blindrelay call pump-7 valve.open '{"percent": 40}' --timeout 5

An error of the agent is printed to standard error
as an object. Exit codes: 2 usage.

METHOD [JSON]   call it, which is a long line of a table
`;

it("prose of a help fills a narrow terminal between words; examples and tables stay", () => {
  const lines = wrapHelp(HELP, 30).split("\n");
  expect(lines).toContain(`  blindrelay call pump-7 valve.open '{"percent": 40}' --timeout 5`);
  expect(lines).toContain("METHOD [JSON]   call it, which is a long line of a table");
  expect(lines.slice(4, 8)).toEqual([
    "An error of the agent is",
    "printed to standard error as",
    "an object. Exit codes: 2",
    "usage.",
  ]);
});

it("a help that fits is left as it is", () => {
  expect(wrapHelp(HELP, 80)).toBe(HELP);
});
