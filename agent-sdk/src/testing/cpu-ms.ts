import { existsSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

/** Linux counts in ticks, which are hundredths of a second on every platform that Node runs on. */
const MS_PER_TICK = 10;
/** The positions of user and system time among the fields after the name. */
const USER_TIME = 11;

/**
 * The processor time of a process, in milliseconds, which other load on the machine does not
 * affect. Wall-clock time on systems without /proc.
 */
export const cpuMs = (pid: number): number => {
  const path = `/proc/${pid}/stat`;
  if (!existsSync("/proc/self/stat")) return performance.now();
  // A name may contain spaces and parentheses; the last parenthesis ends it.
  const fields = readFileSync(path, "latin1").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[USER_TIME]) + Number(fields[USER_TIME + 1])) * MS_PER_TICK;
};
