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
