import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { type BoardMember, Seat } from "./boards.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const seated = (startMs: number) => {
  const done: string[] = [];
  const seat = new Seat({ id: "lamp", startMs } as BoardMember);
  seat.start(() => ({
    powerOn: async () => void done.push("on"),
    powerOff: async () => void done.push("off"),
    kill: () => undefined,
  }));
  return { seat, done };
};

test("a board that is on is not switched on again", async () => {
  const { seat, done } = seated(10);
  await vi.advanceTimersByTimeAsync(10);
  seat.powerOn({});
  await seat.powerOff();
  seat.powerOn({});
  seat.powerOn({});
  await seat.powerOff();
  expect(done).toEqual(["on", "off", "on", "off"]);
});

test("a board that lost its power before its start stays off until the power is back", async () => {
  const { seat, done } = seated(10);
  await seat.powerOff();
  await vi.advanceTimersByTimeAsync(20);
  expect(done).toEqual([]);
  seat.powerOn({});
  await vi.advanceTimersByTimeAsync(20);
  expect(done).toEqual(["on"]);
});
