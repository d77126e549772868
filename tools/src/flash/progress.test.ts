import { stripVTControlCharacters } from "node:util";
import { expect, it } from "vitest";
import { ProgressLine } from "./progress.ts";

const shownIn = (columns: number, isTTY = true): string => {
  const written: string[] = [];
  const write = (text: unknown): boolean => written.push(String(text)) > 0;
  using line = new ProgressLine({ columns, isTTY, write });
  line.show("3 not ok,", 50, 100, "agents");
  return stripVTControlCharacters(written[0] ?? "").trimStart();
};

it("keeps to one row of the terminal, the count before the bar", () => {
  expect(shownIn(80)).toBe(`3 not ok, ${"#".repeat(15)}${".".repeat(15)} 50 of 100 agents`);
  expect(shownIn(40)).toBe("3 not ok, ######...... 50 of 100 agents");
  expect(shownIn(20)).toBe("3 not ok,  50 of 100 agents".slice(0, 19));
  expect([shownIn(0), shownIn(80, false)]).toEqual([shownIn(80), ""]);
});
