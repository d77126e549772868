/** The processes of a search: each is one job, and this one collects what they find. */
import type { ChildProcess } from "node:child_process";
import { extname, join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { forkJob, stopChild, whenEnded } from "../base/processes.ts";
import type { Scenario } from "../scenario/schema.ts";
import { bucketOf, type Finding } from "./findings.ts";
import type { HuntOptions } from "./hunt.ts";

export type SearchTask = Omit<HuntOptions, "programs" | "endsAt" | "signal"> & {
  /** Names the programs to load. */
  readonly scenario?: Scenario;
  readonly forMs: number;
};
/** One that is being played. */
interface Case {
  readonly number: number;
  readonly scenario: Scenario;
  readonly seed: number;
}
export type ToSearchProcess = SearchTask | "stop";
export type FromSearchProcess =
  | ({ kind: "begun" } & Case)
  | { kind: "played"; cases: number; triples: number }
  | { kind: "found"; finding: Finding }
  | { kind: "kept"; scenario: Scenario; seed: number }
  | { kind: "said"; text: string }
  | { kind: "over" }
  | { kind: "failed"; reason: string };

/** What was found before an interruption is still made small, if that is quick. */
const STOP_GRACE_MS = 15_000;

/**
 * Resolves when all jobs are over; rejects if one fails. A case that ends its process, or throws,
 * is a finding, as it was drawn: a new process goes on after it.
 */
export async function searchInJobs(
  task: Omit<SearchTask, "job" | "from">,
  signal: AbortSignal,
  heard: (message: FromSearchProcess, job: number) => void,
): Promise<void> {
  const program = join(import.meta.dirname, `search-process${extname(import.meta.filename)}`);
  const endsAt = performance.now() + task.forMs;
  const children = new Set<ChildProcess>();
  /** What was found, of which later processes are told. */
  const known = new Set(task.known);
  let isOver = false;
  let hurry: NodeJS.Timeout | undefined;
  const stop = (): void => {
    for (const child of children) if (child.connected) child.send("stop");
    hurry = setTimeout(() => {
      for (const child of children) child.kill("SIGKILL");
    }, STOP_GRACE_MS);
  };
  signal.addEventListener("abort", stop, { once: true });
  /** Resolves with the case that ended the process and how, or null when the job is over. */
  const work = (job: number, from: number): Promise<[Case, string] | null> =>
    new Promise((resolve, reject) => {
      const child = forkJob(program, process.execArgv);
      children.add(child);
      let playing: Case | null = null;
      const broke = (how: string, failure: string): void => {
        if (playing === null) reject(new Failure("fault", failure));
        else resolve([playing, how]);
      };
      child.on("message", (message: FromSearchProcess) => {
        if (message.kind === "over") resolve(null);
        else if (message.kind === "failed") {
          broke(message.reason, message.reason);
          child.kill();
        } else if (message.kind === "begun") playing = message;
        else {
          if (message.kind === "found") known.add(bucketOf(message.finding));
          heard(message, job);
        }
      });
      whenEnded(child).then((how) => {
        children.delete(child);
        if (signal.aborted || isOver) resolve(null);
        else broke(`its process ended (${how})`, `a job of the search ended (${how})`);
      });
      const forMs = endsAt - performance.now();
      child.send({ ...task, known, job, from, forMs } satisfies SearchTask);
    });
  const whole = async (_: unknown, job: number): Promise<void> => {
    for (let ended = await work(job, 0); ended !== null; ) {
      const [{ number, scenario, seed }, how] = ended;
      const detail = how.split("\n", 1)[0] ?? how;
      const finding = { oracle: "crash", detail, seed, scenario };
      if (!known.has(bucketOf(finding))) heard({ kind: "found", finding }, job);
      known.add(bucketOf(finding));
      ended = signal.aborted || isOver ? null : await work(job, number + 1);
    }
  };
  try {
    await Promise.all(Array.from({ length: task.jobs }, whole));
  } finally {
    isOver = true;
    clearTimeout(hurry);
    signal.removeEventListener("abort", stop);
    await Promise.all([...children].map((child) => stopChild(child, () => child.kill(), 500)));
  }
}
