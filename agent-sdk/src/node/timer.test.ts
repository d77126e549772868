import { systemTimer } from "@blindrelay/protocol/elapsed-clock";
import { expect, it, vi } from "vitest";

it("the time for which the machine slept has passed for its sessions", () => {
  const timer = systemTimer();
  const before = timer.now();
  const { now } = Date;
  const clock = vi.spyOn(Date, "now").mockImplementation(() => now() + 3_600_000);
  expect(timer.now() - before).toBeGreaterThan(3_590_000);
  clock.mockRestore();
});
