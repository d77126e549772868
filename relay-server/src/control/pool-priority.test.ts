/** Password hashes have a lower priority than the thread that forwards messages. */
import { readdirSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { expect, test } from "vitest";
import { hashPassword } from "./passwords.ts";

test.runIf(process.platform === "linux")("the pool's threads have a lower priority", async () => {
  await hashPassword("correct horse battery");
  const own = getPriority();
  const tasks = readdirSync("/proc/self/task").map((task) => ({
    name: readFileSync(`/proc/self/task/${task}/comm`, "utf8").trim(),
    priority: getPriority(Number(task)),
  }));
  const pool = tasks.filter(({ name }) => name === "libuv-worker");
  expect(pool.length).toBeGreaterThan(0);
  for (const { priority } of pool) expect(priority).toBe(Math.min(19, own + 5));
  expect(tasks.filter(({ priority }) => priority > own)).toHaveLength(own < 19 ? pool.length : 0);
});
