import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { fleetTimer } from "./timer.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

test("long waits that end at about the same time share one timer, and none ends early", () => {
  const timer = fleetTimer();
  const lateness: number[] = [];
  for (let i = 0; i < 50; i++) {
    vi.advanceTimersByTime(7);
    const dueMs = timer.now() + 75_000;
    timer.set(75_000, () => lateness.push(timer.now() - dueMs));
  }
  expect(vi.getTimerCount()).toBeLessThan(6);
  vi.advanceTimersByTime(76_000);
  expect(lateness).toHaveLength(50);
  expect(Math.min(...lateness)).toBeGreaterThanOrEqual(0);
  expect(Math.max(...lateness)).toBeLessThan(110);
});

test("short waits are exact, and cleared ones never fire", () => {
  const timer = fleetTimer();
  const fired: string[] = [];
  timer.set(20, () => fired.push("short"));
  timer.clear(timer.set(20, () => fired.push("cleared, short")));
  const long = timer.set(10_000, () => fired.push("cleared, long"));
  timer.set(10_000, () => fired.push("long"));
  vi.advanceTimersByTime(22);
  expect(fired).toEqual(["short"]);
  timer.clear(long);
  timer.clear(long);
  vi.advanceTimersByTime(11_000);
  expect(fired).toEqual(["short", "long"]);
  timer.clear(long);
  timer.clear(null);
});
