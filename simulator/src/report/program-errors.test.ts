import { expect, it } from "vitest";
import { ProgramErrors } from "./program-errors.ts";

it("lists rejected promises last: when Node tells of them is not the run's time", () => {
  const codes = (late: boolean): string[] => {
    const errors = new ProgramErrors();
    if (!late) errors.rejected("Error: adrift");
    errors.add({ example: "g-00001: a timer of the program failed: Error: dry" });
    if (late) errors.rejected("Error: adrift");
    return [...errors.all().map(({ example }) => example), errors.judge().detail];
  };
  expect(codes(false)).toEqual(codes(true));
});

it("finds what nobody catches also after handlers threw whatever they liked", () => {
  const errors = new ProgramErrors();
  for (let n = 0; n < 200; n++) errors.add({ code: "HANDLER", example: "a".repeat(n) });
  errors.add({ example: "the program failed" });
  expect([errors.judge().ok, errors.all().length]).toEqual([false, 101]);
});
