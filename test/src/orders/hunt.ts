/**
 * A separate process, so that the sessions run as Node loads them. Does each job that its arguments
 * name as JSON, and prints a line of JSON with what was found.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { REPOSITORY } from "../adversary/build.ts";
import { buildMutant } from "../adversary/mutant-build.ts";
import { type Build, loadBuild } from "./build.ts";
import { type Explored, explore } from "./explore.ts";
import type { Bounds } from "./moves.ts";
import type { Step } from "./murphi.ts";
import type { Promised } from "./promises.ts";
import { replay, replayModel } from "./replay.ts";
import { DEPTH, RULES } from "./rules.ts";

export interface Job {
  readonly id: string;
  /** The rule that is left out; null: none. */
  readonly rule: number | null;
  readonly bounds: Bounds;
  /** A trace of the model to play; absent: search. */
  readonly steps?: readonly Step[];
}

export interface Found {
  readonly id: string;
  /** Null: a trace of the model was played. */
  readonly explored: Explored | null;
  /** What the trace breaks, played from the start. */
  readonly played: Promised | null;
  /** Why nothing was done, such as a patch that no longer fits. */
  readonly problem: string | null;
}

const perform = (build: Build, { id, bounds, steps }: Job): Found => {
  if (steps !== undefined) {
    return { id, explored: null, played: replayModel(build, bounds, steps), problem: null };
  }
  const explored = explore(build, bounds, DEPTH);
  return { id, explored, played: replay(build, bounds, explored.trace), problem: null };
};

/** With the rule left out. */
const performWithout = async (job: Job, rule: number): Promise<Found> => {
  const root = mkdtempSync(join(tmpdir(), "blindrelay-rule-"));
  try {
    buildMutant(root, RULES[rule]?.patches ?? []);
    return perform(await loadBuild(root), job);
  } finally {
    rmSync(root, { recursive: true });
  }
};

for (const text of process.argv.slice(2)) {
  const job = JSON.parse(text) as Job;
  const { id, rule } = job;
  const found = await (rule === null
    ? loadBuild(REPOSITORY).then((build) => perform(build, job))
    : performWithout(job, rule)
  ).catch((thrown) => ({ id, explored: null, played: null, problem: String(thrown) }));
  process.stdout.write(`${JSON.stringify(found)}\n`);
}
