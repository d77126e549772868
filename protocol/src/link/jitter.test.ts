import { expect, it } from "vitest";
import { doubled, jittered, randomFraction } from "./jitter.ts";

it("a wait doubles each time up to its limit, however often", () => {
  const waits = [0, 1, 2, 5, 6, 31, 32, 33, 1e9].map((times) => doubled(1000, times, 60_000));
  expect(waits).toEqual([1000, 2000, 4000, 32_000, 60_000, 60_000, 60_000, 60_000, 60_000]);
  expect(doubled(90_000, 0, 60_000)).toBe(60_000);
});

it("a fraction is below 1, and differs between devices whose randomness does not", () => {
  const random = (...bytes: number[]) => {
    return (length: number) => Uint8Array.from({ length }, (_, n) => bytes[n] ?? 0);
  };
  const half = 2 ** 31;
  expect(randomFraction(random(), 0)).toBe(0);
  expect(randomFraction(random(1, 2, 3, 4), 0)).toBe(0x01020304 / 2 ** 32);
  expect(randomFraction(random(255, 255, 255, 255), 0)).toBeLessThan(1);
  expect(randomFraction(random(0x40), half)).toBe(0.75);
  expect(randomFraction(random(0xc0), half)).toBe(0.25);
});

it("jitter takes up to half of a wait, in whole milliseconds", () => {
  const waits = [0, 0.5, 1 - 2 ** -32].map((fraction) => jittered(1001, fraction));
  expect(waits).toEqual([1001, 751, 501]);
});
