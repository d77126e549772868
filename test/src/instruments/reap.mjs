/** `reap.mjs RUN`: see reaper.ts. */
import { readdirSync, readFileSync, rmSync } from "node:fs";

const [, , run] = process.argv;
const MARK = `BLINDRELAY_TEST_RUN=${run}`;
/** Vitest's own workers have the name too, and end by themselves when vitest has. */
const OWN_END_MS = 2_000;
const POLL_MS = 50;

/** The ids of all processes that were started with this name. */
const marked = () =>
  readdirSync("/proc")
    .filter((name) => /^[0-9]+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "latin1").split("\0").includes(MARK);
      } catch {
        return false; // someone else's, or ended
      }
    });

const endAll = async () => {
  if (process.platform !== "linux") return;
  const deadline = performance.now() + OWN_END_MS;
  while (marked().length > 0 && performance.now() < deadline) {
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  // Repeated until there are none: a process may have started another before it was killed.
  for (let left = marked(); left.length > 0; left = marked()) {
    for (const pid of left) {
      try {
        process.kill(Number(pid), "SIGKILL");
      } catch {
        // Already ended.
      }
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
};

const reap = async () => {
  await endAll();
  rmSync(run, { recursive: true, force: true, maxRetries: 5 });
};

process.stdin.on("end", reap).on("error", reap).resume();
