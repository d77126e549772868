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
