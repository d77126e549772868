import { expect, it } from "vitest";
import { table } from "./output.ts";

// lathe-cli/lathe#174
it.each([
  ["名前ポンプ", 10],
  ["ｐｕｍｐ", 8],
  ["e\u0301clair", 6],
  ["👍", 2],
  ["한글", 4],
  ["Pumpe, Tür", 10],
])("columns stay below each other on a terminal, also after %s", (name, columns) => {
  const [, first = "", second = ""] = table(
    ["NAME", "X"],
    [
      ["a name of sixteen", "x"],
      [name, "x"],
    ],
  ).split("\n");
  expect(first.indexOf("  x")).toBe(17);
  expect(second).toBe(`${name}${" ".repeat(17 - columns)}  x`);
});

it("a value that fills a packet is cut at once, and more rows fit than a call takes arguments", () => {
  const long = "ab\u0301".repeat(20_000);
  const lines = table(["AGENT", "PORT"], [["pump-7", long]], 20).split("\n");
  expect(lines).toEqual(["AGENT   PORT", `pump-7  ${"ab\u0301".repeat(5)}a…`]);
  expect(table(["A"], Array(150_000).fill(["a"])).length).toBe(300_001);
});
