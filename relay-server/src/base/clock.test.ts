/** Two clocks: a monotonic one and the machine's; and detecting a jump. */
import { expect, test } from "vitest";
import { clockWatch, systemClocks } from "./clock.ts";

const HOUR_MS = 3_600_000;

const machine = () => {
  let [wall, counter] = [1_800_000_000_000, 0];
  const clocks = systemClocks(
    () => wall,
    () => counter,
  );
  return {
    clocks,
    pass: (ms: number) => {
      wall += ms;
      counter += ms;
    },
    jump: (ms: number) => {
      wall += ms;
    },
  };
};

test("a jump moves only the wall clock, and its correction moves it back", () => {
  const { clocks, pass, jump } = machine();
  const start = clocks.steadyMs();
  expect(clocks.wallMs()).toBe(start);
  pass(5);
  jump(48 * HOUR_MS);
  expect([clocks.steadyMs(), clocks.wallMs()]).toEqual([start + 5, start + 5 + 48 * HOUR_MS]);
  jump(-48 * HOUR_MS);
  pass(5);
  expect([clocks.steadyMs(), clocks.wallMs()]).toEqual([start + 10, start + 10]);
});

test("after a jump, and after its correction, the wall clock is not trusted for a day", () => {
  const { clocks, pass, jump } = machine();
  const watch = clockWatch(clocks);
  pass(HOUR_MS);
  expect(watch.isTrusted()).toBe(true);
  jump(400 * 24 * HOUR_MS);
  expect(watch.look()).toBe(true);
  expect(watch.look()).toBe(false);
  pass(12 * HOUR_MS);
  expect(watch.isTrusted()).toBe(false);
  jump(-400 * 24 * HOUR_MS);
  pass(23 * HOUR_MS);
  expect(watch.isTrusted()).toBe(false);
  pass(25 * HOUR_MS);
  expect(watch.isTrusted()).toBe(true);
});

test("a clock that is a little fast or slow has not jumped", () => {
  const { clocks, pass, jump } = machine();
  const watch = clockWatch(clocks);
  for (let i = 0; i < 100; i += 1) {
    pass(1000);
    jump(100);
    expect(watch.look()).toBe(false);
  }
});
