import { existsSync, readFileSync } from "node:fs";
import { performance } from "node:perf_hooks";

/** Linux counts in ticks, which programs see as hundredths of a second everywhere. */
const MS_PER_TICK = 10;
/** Of user and system time among the fields behind the name. */
const USER_TIME = 11;

/**
 * The processor time of a process, in milliseconds: what else a busy machine does is not counted.
 * Where the system does not tell it as a file, the clock on the wall.
 */
export const cpuMs = (pid: number): number => {
  const path = `/proc/${pid}/stat`;
  if (!existsSync("/proc/self/stat")) return performance.now();
  // A name may hold blanks and brackets; the last bracket ends it.
  const fields = readFileSync(path, "latin1").split(") ").at(-1)?.split(" ") ?? [];
  return (Number(fields[USER_TIME]) + Number(fields[USER_TIME + 1])) * MS_PER_TICK;
};
