import fc from "fast-check";
import { expect, test } from "vitest";
import { elapsedClock } from "./elapsed-clock.ts";

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
