import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { elapsedClock, systemTimer } from "./elapsed-clock.ts";

const HOUR_MS = 3_600_000;

/** A machine's two clocks. */
const machine = () => {
  const clocks = { steady: 100, wall: 1_767_225_600_000 };
  const clock = elapsedClock(
    () => clocks.steady,
    () => clocks.wall,
  );
  const from = clock.now();
  return {
    clock,
    passed: () => clock.now() - from,
    run: (ms: number) => {
      clocks.steady += ms;
      clocks.wall += ms;
    },
    sleep: (ms: number) => {
      clocks.wall += ms;
    },
    set: (ms: number) => {
      clocks.wall += ms;
    },
  };
};

test("time in which the machine slept has passed, and is said", () => {
  const { clock, passed, run, sleep } = machine();
  run(1000);
  expect([passed(), clock.leapt()]).toEqual([1000, 0]);
  sleep(8 * HOUR_MS);
  run(10);
  expect([passed(), clock.leapt()]).toEqual([8 * HOUR_MS + 1010, 8 * HOUR_MS]);
});

test("a machine may sleep before anybody looks", () => {
  let wall = 1_767_225_600_000;
  const clock = elapsedClock(
    () => 100,
    () => wall,
  );
  wall += 5000;
  expect([clock.now(), clock.leapt()]).toEqual([100, 0]);
  wall += 5001;
  expect([clock.now(), clock.leapt()]).toEqual([5101, 5001]);
  const other = elapsedClock(
    () => 100,
    () => wall,
  );
  wall += HOUR_MS;
  expect([other.now(), other.leapt()]).toEqual([HOUR_MS + 100, HOUR_MS]);
});

test("a clock that is corrected or set back changes nothing, not even after it is set forward again", () => {
  const { clock, passed, run, set } = machine();
  for (let i = 0; i < 100; i++) {
    run(1000);
    set(i % 2 === 0 ? 4000 : -4000);
    expect(passed()).toBe(1000 * (i + 1));
  }
  set(-HOUR_MS);
  run(5);
  expect([passed(), clock.leapt()]).toEqual([100_005, 0]);
});

test("whatever the clocks do, it never decreases, nor lags behind the monotonic one", () => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant("run" as const), ms: fc.nat(1_000_000) }),
    fc.record({ kind: fc.constant("sleep" as const), ms: fc.nat(100_000_000) }),
    fc.record({ kind: fc.constant("set" as const), ms: fc.integer({ min: -1e9, max: 1e9 }) }),
  );
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const world = machine();
      let [last, ran] = [0, 0];
      for (const { kind, ms } of steps) {
        world[kind](ms);
        if (kind === "run") ran += ms;
        const passed = world.passed();
        expect(passed).toBeGreaterThanOrEqual(Math.max(last, ran));
        last = passed;
      }
    }),
  );
});

describe("the timer of Node and browsers", () => {
  afterEach(() => void vi.useRealTimers());

  /** Also longer than setTimeout can wait: 24.8 days, which it would cut to a millisecond. */
  test.each([0, 1000, 2 ** 31 - 2, 2 ** 31 - 1, 2 ** 31, 100 * 24 * HOUR_MS])(
    "fires once after %d ms, and not earlier",
    (ms) => {
      vi.useFakeTimers();
      const timer = systemTimer();
      const began = timer.now();
      const fired: number[] = [];
      timer.set(ms, () => fired.push(timer.now() - began));
      vi.advanceTimersByTime(ms);
      expect(fired).toEqual([]);
      vi.advanceTimersByTime(2);
      expect(fired).toEqual([ms + 1]);
      vi.advanceTimersByTime(2 ** 32);
      expect(fired).toHaveLength(1);
    },
  );

  test("fires no more once it is cleared, at any time", () => {
    vi.useFakeTimers();
    const timer = systemTimer();
    const fired = vi.fn();
    for (const passed of [0, 2 ** 31, 2 ** 32]) {
      const handle = timer.set(2 ** 33, fired);
      vi.advanceTimersByTime(passed);
      timer.clear(handle);
      vi.advanceTimersByTime(2 ** 34);
    }
    const handle = timer.set(1, fired);
    vi.advanceTimersByTime(5);
    timer.clear(handle);
    timer.clear(null);
    expect(fired).toHaveBeenCalledTimes(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("counts what the wall clock alone has gained as sleep", () => {
    vi.useFakeTimers();
    const timer = systemTimer();
    const began = timer.now();
    vi.setSystemTime(Date.now() + HOUR_MS);
    vi.advanceTimersByTime(1000);
    expect([timer.now() - began, timer.leapt?.()]).toEqual([HOUR_MS + 1000, HOUR_MS]);
  });
});
