/** The processes of a search: each is one job, and this one collects what they find. */
import { fork } from "node:child_process";
import { extname, join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { stopChild, watch, whenEnded } from "../base/processes.ts";
import type { Scenario } from "../scenario/schema.ts";
import type { Finding } from "./findings.ts";
import type { HuntOptions } from "./hunt.ts";

export type SearchTask = Omit<HuntOptions, "programs" | "endsAt" | "signal"> & {
  /** Names the programs to load. */
  readonly scenario?: Scenario;
  readonly forMs: number;
};
export type ToSearchProcess = SearchTask | "stop";
export type FromSearchProcess =
  | { kind: "played"; cases: number; triples: number }
  | { kind: "found"; finding: Finding }
  | { kind: "kept"; scenario: Scenario; seed: number }
  | { kind: "said"; text: string }
  | { kind: "over" }
  | { kind: "failed"; reason: string };

/** What was found before an interruption is still made small, if that is quick. */
const STOP_GRACE_MS = 15_000;

/** Resolves when all jobs are over; rejects if one fails. */
export async function searchInJobs(
  task: Omit<SearchTask, "job">,
  signal: AbortSignal,
  heard: (message: FromSearchProcess, job: number) => void,
): Promise<void> {
  const program = join(import.meta.dirname, `search-process${extname(import.meta.filename)}`);
  const children = Array.from({ length: task.jobs }, () =>
    watch(
      fork(program, {
        serialization: "advanced",
        stdio: ["ignore", "ignore", "inherit", "ipc"],
        execArgv: [...process.execArgv, "--disable-warning=ExperimentalWarning"],
      }),
    ),
  );
  let hurry: NodeJS.Timeout | undefined;
  const stop = (): void => {
    for (const child of children) if (child.connected) child.send("stop");
    hurry = setTimeout(() => {
      for (const child of children) child.kill("SIGKILL");
    }, STOP_GRACE_MS);
  };
  signal.addEventListener("abort", stop, { once: true });
  const work = (child: (typeof children)[number], job: number): Promise<void> =>
    new Promise((resolve, reject) => {
      child.on("message", (message: FromSearchProcess) => {
        if (message.kind === "over") resolve();
        else if (message.kind === "failed") reject(new Failure("fault", message.reason));
        else heard(message, job);
      });
      whenEnded(child).then((how) => {
        if (signal.aborted) resolve();
        else reject(new Failure("fault", `a job of the search ended (${how})`));
      });
      child.send({ ...task, job } satisfies SearchTask);
    });
  try {
    await Promise.all(children.map(work));
  } finally {
    clearTimeout(hurry);
    signal.removeEventListener("abort", stop);
    await Promise.all(children.map((child) => stopChild(child, () => child.kill(), 500)));
  }
}
