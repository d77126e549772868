/**
 * Password hashes run in Node's thread pool with a lower priority: on a machine with few cores, a
 * flood of guesses must not delay the thread that forwards messages.
 */
import { readdirSync, readFileSync } from "node:fs";
import { constants, getPriority, setPriority } from "node:os";

const TASKS = "/proc/self/task";
/** As libuv calls them. */
const POOL_THREAD = "libuv-worker";
/** In steps of nice(1), each about 25 % less of a core that others want too. */
const STEPS = 10;

let done = false;

/**
 * Lowers it once; call it when the pool has been given something to do. Only Linux has priorities
 * of threads: elsewhere, and where it is not allowed, all stays as it is.
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
    // Without /proc, or forbidden: hashes then compete as before.
  }
};
