import { expect, onTestFinished, test } from "vitest";
import { searchInJobs } from "./jobs.ts";

/** In the process of a job: the first case ends it, and the next two throw the same. */
const FATAL = `
  const send = process.send;
  process.send = (message) => {
    if (message.kind !== "begun" || message.number > 2) return send.call(process, message);
    const kill = () => process.kill(process.pid, "SIGKILL");
    send.call(process, message, undefined, undefined, message.number === 0 ? kill : () => {});
    if (message.number > 0) throw new Error("planted");
  };
`;

test("a case that ends its process or throws is a finding, and the search goes on after it", async () => {
  const flags = process.execArgv.length;
  process.execArgv.push("--import", `data:text/javascript,${encodeURIComponent(FATAL)}`);
  onTestFinished(() => {
    process.execArgv.length = flags;
  });
  const ended = new AbortController();
  const found: string[] = [];
  const names: string[] = [];
  const task = {
    seed: 1,
    jobs: 1,
    known: new Set<string>(),
    corpus: [],
    folder: ".",
    forMs: 60_000,
  };
  await searchInJobs(task, ended.signal, (message) => {
    if (message.kind === "played" && message.cases > 3) ended.abort();
    if (message.kind !== "found") return;
    found.push(`${message.finding.oracle}: ${message.finding.detail}`);
    names.push(message.finding.scenario.name);
  });
  expect(found).toEqual(["crash: its process ended (SIGKILL)", "crash: Error: planted"]);
  expect(names).toEqual(["search 1/0/0", "search 1/0/1"]);
});
