import { expect, it } from "vitest";
import { Pacer } from "./pacer.ts";

const spend = (pacer: Pacer, times: number, nowMs: number) => {
  for (let n = 0; n < times; n++) pacer.spend(nowMs);
};

it("a burst may be sent at once, and then one call for each part of a second", () => {
  const pacer = new Pacer(10, 5, 1_000);
  expect(pacer.waitMs(1_000)).toBe(0);
  spend(pacer, 4, 1_000);
  expect(pacer.waitMs(1_000)).toBe(0);
  pacer.spend(1_000);
  expect(pacer.waitMs(1_000)).toBe(100);
  expect(pacer.waitMs(1_050)).toBe(50);
  expect(pacer.waitMs(1_100)).toBe(0);
});

it("the wait is over when it says, however often it is asked meanwhile", () => {
  const pacer = new Pacer(900, 1, 0);
  pacer.spend(0);
  expect(pacer.waitMs(0)).toBe(2);
  expect(pacer.waitMs(1)).toBe(1);
  expect(pacer.waitMs(2)).toBe(0);
});

it("what is sent beyond the burst is waited for by later calls", () => {
  const pacer = new Pacer(10, 5, 0);
  spend(pacer, 8, 0);
  expect(pacer.waitMs(0)).toBe(400);
  expect(pacer.waitMs(300)).toBe(100);
});

it("a long silence allows no more than one burst", () => {
  const pacer = new Pacer(10, 5, 0);
  spend(pacer, 5, 0);
  spend(pacer, 5, 3_600_000);
  expect(pacer.waitMs(3_600_000)).toBe(100);
});
