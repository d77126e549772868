/** Has jobs done by two processes. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import type { Found, Job } from "./hunt.ts";

const HUNT = fileURLToPath(new URL("hunt.ts", import.meta.url));

const run = (jobs: readonly Job[]): Promise<Found[]> =>
  new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [HUNT, ...jobs.map((job) => JSON.stringify(job))]);
    let out = "";
    let err = "";
    child.stdout.on("data", (chunk: Buffer) => {
      out += chunk.toString();
    });
    child.stderr.on("data", (chunk: Buffer) => {
      err += chunk.toString();
    });
    child.on("error", reject);
    child.on("close", (code) => {
      if (code !== 0) reject(new Error(err));
      else
        resolve(
          out
            .split("\n")
            .filter((line) => line !== "")
            .map((line) => JSON.parse(line)),
        );
    });
  });

/** What was found, by the jobs' ids. */
export const hunt = async (jobs: readonly Job[]): Promise<ReadonlyMap<string, Found>> => {
  const halves = [0, 1].map((half) => jobs.filter((_job, i) => i % 2 === half));
  const found = await Promise.all(halves.map(run));
  return new Map(found.flat().map((one) => [one.id, one]));
};
