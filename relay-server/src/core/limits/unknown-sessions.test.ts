import { expect, it } from "vitest";
import { UnknownSessions } from "./unknown-sessions.ts";

it("spreads what exceeds 60 a minute of an address over 120 s", () => {
  const sessions = new UnknownSessions();
  const waits = Array.from({ length: 180 }, () => sessions.count("2001:db8::1", 0));
  expect(new Set(waits.slice(0, 60))).toEqual(new Set([0]));
  const spread = waits.slice(60);
  expect([Math.min(...spread), Math.max(...spread), new Set(spread).size]).toEqual([1, 120, 120]);
  expect(sessions.count("2001:db8::2", 59_999)).toBeGreaterThan(0); // the same /64
  expect(sessions.count("192.0.2.1", 59_999)).toBe(0);
  expect(sessions.count("2001:db8::1", 60_000)).toBe(0);
});

it("remembers a bounded number of addresses", () => {
  const sessions = new UnknownSessions();
  for (let host = 0; host < 12_000; host += 1) sessions.count(`host-${host}`, 0);
  expect(sessions.size).toBe(10_000);
});
