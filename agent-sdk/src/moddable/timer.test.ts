/** Months on a clock with ticks that wrap, and a wall clock that is set back. */
import { expect, it } from "vitest";
import { ManualTimer } from "../memory/index.ts";
import { fakeTime } from "../testing/moddable-sdk.ts";
import type { ModdableTime } from "./sdk.ts";
import { moddableTimer } from "./timer.ts";

const DAY_MS = 86_400_000;

/** Delays are 32-bit integers there; longer ones would fire at once. */
const narrow = (clock: ManualTimer) => ({
  set: (fn: () => void, ms?: number) => clock.set((ms ?? 0) | 0, fn),
  clear: (handle: unknown) => clock.clear(handle),
});

it("fires after forty days, neither at once nor early, and counts time across every wrap", () => {
  const clock = new ManualTimer();
  const timer = moddableTimer(
    narrow(clock),
    fakeTime(() => clock.now()),
  );
  let firedAt = 0;
  timer.set(40 * DAY_MS, () => {
    firedAt = timer.now();
  });
  for (let day = 0; day < 60; day++) {
    clock.advance(DAY_MS);
    timer.now();
  }
  expect(firedAt).toBe(40 * DAY_MS);
  expect(timer.now()).toBe(60 * DAY_MS);
});

it("never goes back, and waits for the rest of a delay when the wall clock was set back", () => {
  const clock = new ManualTimer();
  let offset = 0;
  const time: ModdableTime = {
    get ticks() {
      return clock.now() + offset;
    },
    delta: (start, end) => end - start,
  };
  const timer = moddableTimer(narrow(clock), time);
  let fired = 0;
  timer.set(1000, () => fired++);
  clock.advance(500);
  const before = timer.now();
  offset -= 3_600_000;
  expect(timer.now()).toBeGreaterThanOrEqual(before);
  clock.advance(499);
  expect(fired).toBe(0);
  clock.advance(2);
  expect(fired).toBe(1);
});
