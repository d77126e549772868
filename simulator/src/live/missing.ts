/** Devices of a live fleet that are not online, as failures of a report. */
import type { FailureCount } from "../report/report.ts";
import type { Missing } from "./fleet.ts";

/** One failure for each reason that they reported. */
export function missingDevices(missing: readonly Missing[]): FailureCount[] {
  const failures = new Map<string, FailureCount>();
  for (const { id, code, advice } of missing) {
    const known = failures.get(code);
    if (known !== undefined) known.count += 1;
    else failures.set(code, { code: `agent ${code}`, count: 1, example: `${id}: ${advice}` });
  }
  return [...failures.values()];
}
