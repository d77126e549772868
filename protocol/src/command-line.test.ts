import { expect, it } from "vitest";
import { joinKeys, wrapHelp } from "./command-line.ts";

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

it("a key that begins with a dash belongs to the option before it", () => {
  const key = `-V${"a".repeat(41)}`;
  const verify = ["release", "verify", "file", "--public-key"];
  expect(joinKeys([...verify, key, "--json"])).toEqual([
    ...verify.slice(0, 3),
    `--public-key=${key}`,
    "--json",
  ]);
  expect(joinKeys(["start", "--release-keys", `${key},${key}`])).toEqual([
    "start",
    `--release-keys=${key},${key}`,
  ]);
  for (const words of [["-V"], ["call", key], ["--json", "-V"], ["--", key], ["--json", `${key}b`]])
    expect(joinKeys(words)).toEqual(words);
});
