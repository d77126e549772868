import { expect, test } from "vitest";
import { seededRandom } from "./random.ts";
import { ManualTimer } from "./timer.ts";

test("of thousands of timers, each fires at its time, in the order of setting if times are equal; cleared ones never", () => {
  const timer = new ManualTimer();
  const random = seededRandom(1);
  const fired: { n: number; at: number }[] = [];
  const expected: { n: number; at: number }[] = [];
  for (let n = 0; n < 8_000; n++) {
    const [byte = 0, fate = 0] = random(2);
    const handle = timer.set(byte, () => fired.push({ n, at: timer.now() }));
    if (fate < 64) expected.push({ n, at: byte });
    else timer.clear(handle);
  }
  expect(timer.count()).toBe(expected.length);
  expected.sort((a, b) => a.at - b.at || a.n - b.n);
  expect(timer.nextAt()).toBe(expected[0]?.at);
  timer.advance(256);
  expect(fired).toEqual(expected);
  expect(timer.count()).toBe(0);
  expect(timer.nextAt()).toBeNull();
});

test("a timer cleared again, or after it fired, or never set, changes nothing", () => {
  const timer = new ManualTimer();
  const first = timer.set(1, () => undefined);
  timer.advance(1);
  const second = timer.set(1, () => undefined);
  timer.clear(second);
  for (const handle of [first, second, null, undefined]) timer.clear(handle);
  expect(timer.count()).toBe(0);
});
