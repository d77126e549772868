/** The relay's clock follows a corrected machine, and never runs backwards or stands still. */
import { expect, test } from "vitest";
import { relayClock } from "./clock.ts";

test("it follows a jump ahead, and counts on through a jump back", () => {
  let [wall, steady] = [1000, 0];
  const pass = (ms: number) => {
    wall += ms;
    steady += ms;
  };
  const now = relayClock(
    () => wall,
    () => steady,
  );
  expect(now()).toBe(1000);
  pass(5);
  expect(now()).toBe(1005);
  wall += 1_800_000_000_000;
  expect(now()).toBe(1_800_000_001_005);
  wall -= 3_600_000;
  expect(now()).toBe(1_800_000_001_005);
  pass(10);
  expect(now()).toBe(1_800_000_001_015);
});
