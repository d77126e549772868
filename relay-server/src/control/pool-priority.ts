/**
 * Password hashes run in Node's thread pool with a lower priority: on a machine with few cores, a
 * flood of guesses must not delay the thread that forwards messages. So do the store's flushes,
 * which mostly wait for the disk.
 */
import { readdirSync, readFileSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";

const TASKS = "/proc/self/task";
/** As named by libuv. */
const POOL_THREAD = "libuv-worker";
/** In steps of nice(1), each about 25 % less of a core that others need too. */
const STEPS = 5;

let done = false;

/**
 * Lowers it once; call it when the pool has work. Only Linux has thread priorities: elsewhere, and
 * if it is not permitted, nothing changes.
 */
export const lowerPoolPriority = (): void => {
  if (done || process.platform !== "linux") return;
  done = true;
  try {
    const lower = Math.min(constants.priority.PRIORITY_LOW, getPriority() + STEPS);
    for (const task of readdirSync(TASKS)) {
      const name = readFileSync(`${TASKS}/${task}/comm`, "utf8").trim();
      if (name === POOL_THREAD) setPriority(Number(task), lower);
    }
  } catch {
    // No /proc, or not permitted: hashes then compete as before.
  }
};
