/** What restarts an agent must not end with the first thing that goes wrong. */
import { EventEmitter } from "node:events";
import { afterAll, expect, it, vi } from "vitest";

afterAll(() => {
  vi.useRealTimers();
  vi.doUnmock("node:child_process");
  vi.resetModules();
});

it("tries again where the machine has no room for another process", async () => {
  vi.useFakeTimers();
  const errors = ["EAGAIN", "ENOMEM"];
  const fork = vi.fn(() => {
    const child = Object.assign(new EventEmitter(), { kill: () => true });
    const code = errors.shift();
    const error = Object.assign(new Error(`spawn ${code}`), { code });
    // Node throws some of them, and emits the others.
    if (code === "ENOMEM") throw error;
    queueMicrotask(() =>
      code === undefined ? child.emit("exit", 7, null) : child.emit("error", error),
    );
    return child;
  });
  vi.doMock("node:child_process", () => ({ fork }));
  vi.resetModules();
  const { supervise } = await import("./supervisor.ts");
  const reasons: string[] = [];
  const ended = async (reason: string): Promise<boolean> => {
    reasons.push(reason);
    return false;
  };
  const code = supervise({ args: [], env: {}, ended });
  await vi.advanceTimersByTimeAsync(60_000);
  expect(await code).toBe(7);
  expect(reasons).toEqual(["spawn EAGAIN", "spawn ENOMEM", "exit code 7"]);
});
