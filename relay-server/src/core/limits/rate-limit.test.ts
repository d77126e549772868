import { expect, it } from "vitest";
import { RateBucket } from "./rate-limit.ts";

const PER_SECOND = 2;
const BURST = 10;

/** How many of many messages pass at a time. */
const passed = (bucket: RateBucket, now: number): number => {
  let count = 0;
  while (count < 100 && bucket.take(PER_SECOND, BURST, now)) count += 1;
  return count;
};

it("lets a burst pass, then as many messages as the rate allows, and never more than a burst", () => {
  const bucket = new RateBucket(BURST, 1_000);
  expect(passed(bucket, 1_000)).toBe(BURST);
  expect(passed(bucket, 1_499)).toBe(0);
  expect(passed(bucket, 1_500)).toBe(1);
  expect(passed(bucket, 3_250)).toBe(3);
  expect(passed(bucket, 3_500)).toBe(1);
  expect(passed(bucket, 100_000)).toBe(BURST);
});

it("gives nothing for a clock that goes back", () => {
  const bucket = new RateBucket(BURST, 60_000);
  expect(passed(bucket, 60_000)).toBe(BURST);
  expect(passed(bucket, 1_000)).toBe(0);
});
