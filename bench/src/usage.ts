/**
 * A process's resource usage, measured from outside and to the nanosecond: contenders in any
 * language are measured alike, without any code of ours in them.
 */
import { readdirSync, readFileSync } from "node:fs";

/** Microseconds of processor time of all threads of a process so far. */
export function cpuUs(pid: number): number {
  let ns = 0;
  for (const thread of readdirSync(`/proc/${pid}/task`)) {
    ns += runtimeNs(`/proc/${pid}/task/${thread}/schedstat`);
  }
  return ns / 1000;
}

/** A thread that has just ended is no longer counted; contenders keep theirs. */
function runtimeNs(path: string): number {
  try {
    return Number(readFileSync(path, "latin1").split(" ")[0]);
  } catch {
    return 0;
  }
}

/** Bytes of resident anonymous memory: what the process holds for itself. */
export function anonymousBytes(pid: number): number {
  const found = /^RssAnon:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "latin1"));
  if (found === null) throw new Error(`/proc/${pid}/status says no RssAnon`);
  return Number(found[1]) * 1024;
}

/** Whether this system provides both; the benchmark needs Linux. */
export function canMeasure(): boolean {
  try {
    return cpuUs(process.pid) > 0 && anonymousBytes(process.pid) > 0;
  } catch {
    return false;
  }
}
