/** `blindrelay-sim search`: looks for what breaks, in scenarios that it draws itself. */
import { availableParallelism } from "node:os";
import { EXIT } from "@blindrelay/protocol/command-line";
import { print } from "../base/output.ts";
import { Stream } from "../base/random-streams.ts";
import { count } from "../report/format.ts";
import { Progress } from "../report/progress.ts";
import { override, scenarioOf } from "../scenario/from-flags.ts";
import { checkScenario, type LoadedScenario, loadScenario } from "../scenario/load.ts";
import { type Problem, ScenarioError, unreadable } from "../scenario/problems.ts";
import { type Base, Drawing } from "../search/draw.ts";
import {
  bucketOf,
  type Finding,
  readCorpus,
  readKnown,
  writeCorpus,
  writeFinding,
} from "../search/findings.ts";
import { searchInJobs } from "../search/jobs.ts";
import { methodsOf } from "../search/methods.ts";
import { interrupted } from "./interruptible.ts";
import { namedProgram, reserve } from "./run.ts";

export interface SearchFlags {
  program?: string;
  for: number;
  jobs?: number;
  seed: number;
  corpus?: string;
  known?: string;
  report: string;
  json?: boolean;
}

/** Cases that are drawn before a search begins. */
const TRIED = 40;
/** The devices of a program without a scenario. */
const AGENTS = 3;

export async function search(
  what: string | undefined,
  flags: SearchFlags,
  signal: AbortSignal,
): Promise<number> {
  const loaded = await loadBase(what, flags.program);
  const base: Base | undefined =
    loaded === null
      ? undefined
      : { scenario: loaded.scenario, methods: await methodsOf(loaded.scenario, loaded.folder) };
  if (base !== undefined && loaded !== null) mustBeDrawable(base, loaded);
  const known = flags.known === undefined ? new Set<string>() : readKnown(flags.known);
  const folder = loaded?.folder ?? process.cwd();
  await reserve(flags);
  const corpus = flags.corpus === undefined ? [] : readCorpus(flags.corpus, folder);
  const jobs = flags.jobs ?? availableParallelism();
  const forMs = flags.for;
  const progress = new Progress(process.stderr);
  const cases = new Map<number, number>();
  const played = (): number => [...cases.values()].reduce((sum, one) => sum + one, 0);
  const buckets = new Set<string>();
  const unwritten = new AbortController();
  let writing = Promise.resolve();
  const write = (work: () => Promise<void>): void => {
    writing = writing.then(work);
    // What cannot be kept is not searched for.
    writing.catch(() => unwritten.abort());
  };
  let triples = 0;

  const report = async (finding: Finding): Promise<void> => {
    const { oracle, detail, seed } = finding;
    const scenario = await writeFinding(flags.report, finding, folder);
    if (flags.json) print(JSON.stringify({ kind: "finding", oracle, detail, scenario, seed }));
    else print(`${scenario}  ${oracle}: ${detail}`);
  };
  const startedAt = performance.now();
  progress.start(
    "s of searching",
    Math.round(forMs / 1000),
    () => Math.round((performance.now() - startedAt) / 1000),
    () => `${count(played())} cases, ${count(triples)} triples, ${count(buckets.size)} found`,
  );
  const task = {
    seed: flags.seed,
    jobs,
    known,
    corpus,
    folder,
    forMs,
    ...(base === undefined ? {} : { base, scenario: base.scenario }),
  };
  try {
    const stop = AbortSignal.any([signal, unwritten.signal]);
    await searchInJobs(task, stop, (message, job) => {
      if (message.kind === "played") {
        cases.set(job, message.cases);
        triples = Math.max(triples, message.triples);
      } else if (message.kind === "said") progress.say(message.text);
      else if (message.kind === "found") {
        const bucket = bucketOf(message.finding);
        // Several jobs may find the same.
        if (buckets.has(bucket)) return;
        buckets.add(bucket);
        write(() => report(message.finding));
      } else if (message.kind === "kept" && flags.corpus !== undefined) {
        const { corpus: into } = flags;
        const name = `${flags.seed}-${job}-${message.seed}`;
        const scenario = { ...message.scenario, seed: message.seed };
        write(() => writeCorpus(into, scenario, folder, name));
      }
    });
  } finally {
    await writing;
    progress.stop();
  }
  process.stderr.write(
    `${count(played())} cases, ${count(triples)} triples of what happened: ${buckets.size === 0 ? "nothing new" : `${count(buckets.size)} found`}\n`,
  );
  if (buckets.size > 0) return EXIT.expectation;
  return signal.aborted ? interrupted() : 0;
}

/** Throws a ScenarioError where a search would play nothing: cases last a few minutes. */
function mustBeDrawable(base: Base, { folder, file }: LoadedScenario): void {
  let problem: Problem | undefined;
  for (let n = 0; n < TRIED; n++) {
    try {
      checkScenario(new Drawing(new Stream(`tried ${n}`)).scenario("a case", base), folder, file);
      return;
    } catch (error) {
      if (!(error instanceof ScenarioError)) throw error;
      [problem] = error.problems;
    }
  }
  throw unreadable(file, `no case of a few minutes can be drawn around it: ${problem?.message}`);
}

/** Null: everything is drawn. */
async function loadBase(
  what: string | undefined,
  program: string | undefined,
): Promise<LoadedScenario | null> {
  if (what !== undefined) {
    return loadScenario(what, (scenario, folder) => {
      const own = program === undefined ? undefined : namedProgram(folder, program);
      return { ...override(scenario, own, undefined), world: "virtual" };
    });
  }
  if (program === undefined) return null;
  const folder = process.cwd();
  const made = scenarioOf(namedProgram(folder, program), AGENTS, []);
  return checkScenario({ ...made, thresholds: [] }, folder, "--program");
}
