/** What the soak reports as a leak. */
import { expect, test } from "vitest";
import { judge } from "./soak.ts";

const MB = 2 ** 20;
const SECONDS = 15;
const CALLS_PER_SECOND = 100;
/** An hour of samples, including 12 MB of calls and reconnects in progress at that moment. */
const hour = (live: (second: number) => number, outside = (_second: number) => 0) =>
  Array.from({ length: 3600 / SECONDS }, (_, i) => ({
    live: 60 * MB + live(i * SECONDS) + ((i % 7) / 6) * 12 * MB,
    outside: 90 * MB + outside(i * SECONDS) + ((i % 5) / 4) * 12 * MB,
  }));
const faultsOf = (samples: ReturnType<typeof hour>) => judge(samples, 3600).faults;

test("memory that is added in the first quarter of the time and stays is level", () => {
  const warmUp = (second: number) => Math.min(second, 900) * 0.1 * MB;
  const { live, outside, faults } = judge(hour(warmUp, warmUp), 3600);
  expect(faults).toEqual([]);
  expect([live.floorsMb, outside.floorsMb].map((floors) => floors.length)).toEqual([10, 10]);
  expect(Math.abs(live.risePerHourMb)).toBeLessThan(0.5);
});

test("20 bytes kept for each call are a leak", () => {
  expect(faultsOf(hour((second) => 20 * CALLS_PER_SECOND * second))).toEqual([
    expect.stringMatching(/^live: memory rose by [4-6][.\d]* MB$/),
  ]);
});

test("memory outside V8's heap that rises by 30 MB an hour is a leak", () => {
  const leak = (second: number) => (30 * MB * second) / 3600;
  expect(faultsOf(hour(() => 0, leak))).toEqual([expect.stringMatching(/^outside: /)]);
});

test.each([0, 1, 12])("%i samples are too few to pass", (count) => {
  expect(faultsOf(hour(() => 0).slice(0, count))).toEqual([
    expect.stringMatching(/^live: \d samples are too few/),
    expect.stringMatching(/^outside: \d samples are too few/),
  ]);
});
