/** Has jobs done by two processes. */
import { inTwoProcesses } from "../adversary/two-processes.ts";
import type { Found, Job } from "./hunt.ts";

/** What was found, by the jobs' ids. */
export const hunt = async (jobs: readonly Job[]): Promise<ReadonlyMap<string, Found>> => {
  const words = jobs.map((job) => JSON.stringify(job));
  const found = await inTwoProcesses<Found>(new URL("hunt.ts", import.meta.url), words);
  return new Map(found.map((one) => [one.id, one]));
};
