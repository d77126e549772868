/**
 * `blindrelay call --where SELECTOR METHOD [JSON]`: one call to each agent that matches, with a
 * journal, so that the command can be killed at any moment and goes on with `--resume`.
 */
import { createHash, randomBytes } from "node:crypto";
import { lstatSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Client, Fleet, type FleetOutcome, outcomesText } from "@blindrelay/client-sdk";
import { Failure } from "@blindrelay/protocol/command-line";
import { withClient } from "../account/connect.ts";
import { abortOnInterrupt } from "../base/interrupted.ts";
import { type JsonFlag, printJson, printResult, printStatus, printText } from "../base/output.ts";
import { writing } from "../base/whole-file.ts";
import type { Settings } from "../config/settings.ts";
import { ProgressLine } from "../flash/progress.ts";
import { heldAgent, matching, matchingIds } from "./agents.ts";
import type { FleetFlags } from "./flags.ts";
import { Journal } from "./journal.ts";
import { renderJunit } from "./junit.ts";
import { lineOf, lineText } from "./outcome-line.ts";

export interface FleetCallFlags extends JsonFlag, FleetFlags {
  readonly dryRun?: boolean;
  readonly atOnce?: number;
  readonly resume?: string;
  readonly junit?: string;
  readonly timeout: number;
  readonly idempotent?: boolean;
  readonly wait?: boolean;
}

const CONNECT_LIMIT_MS = 30_000;

/** In the profile's folder, under the time, so that the newest is found. */
const newJournal = (settings: Settings): string => {
  const name = `${new Date().toISOString().replace(/[:.]/g, "-")}-${randomBytes(3).toString("hex")}`;
  return join(dirname(settings.profilePath), "journals", `${name}.jsonl`);
};

const dryRun = async (settings: Settings, where: string, json: boolean): Promise<void> => {
  for (const { agent_id, name, online } of await matching(settings, where)) {
    const held = settings.keptSecretOf(agent_id) !== null;
    if (json) printJson({ agent_id, name, online, secret: held });
    else printText(`${agent_id} ${online ? "online" : "offline"}${held ? "" : ", no secret here"}`);
  }
};

/** `ok`, `error` and `unknown` stay; `unknown` is tried again if the call may run twice. */
const isSettled = ({ outcome }: FleetOutcome, idempotent: boolean): boolean =>
  outcome === "ok" || outcome === "error" || (outcome === "unknown" && !idempotent);

/** Throws a Failure (usage). */
const writeReport = (path: string, text: string): void =>
  writing(path, () => writeFileSync(path, text));

/** Leaves what is there as it is. Throws a Failure (usage). */
const checkReport = (path: string): void =>
  writing(path, () => {
    const isNew = lstatSync(path, { throwIfNoEntry: false }) === undefined;
    writeFileSync(path, "", { flag: "a" });
    if (isNew) rmSync(path);
  });

/** Makes the calls that are left; whether a signal came. */
const callLeft = async (
  settings: Settings,
  journal: Journal,
  before: readonly FleetOutcome[],
  params: object | undefined,
  flags: FleetCallFlags,
  told: (outcome: FleetOutcome) => void,
): Promise<boolean> => {
  const { head } = journal;
  const { staged, abortOver, atOnce, idempotent = false, wait = false } = flags;
  let signal: AbortSignal | undefined;
  const call = async (client: Client): Promise<void> => {
    signal = abortOnInterrupt("ending when the calls in flight are answered");
    const fleet = new Fleet(
      async () => head.agents,
      (id) => heldAgent(client, settings, id),
    );
    const outcomes = fleet.call(head.method, params, {
      staged,
      abortOver,
      atOnce,
      idempotent,
      before,
      timeoutMs: flags.timeout * 1000,
      waitForAgent: wait,
      signal,
      sending: (id) => journal.sent(id),
    });
    const written: Promise<void>[] = [];
    for await (const outcome of outcomes) {
      written.push(journal.settled(outcome));
      told(outcome);
    }
    await Promise.all(written);
  };
  await withClient(settings, CONNECT_LIMIT_MS, call, { waits: wait });
  return signal?.aborted === true;
};

/** Throws a Failure; expectation unless all are ok. */
export const callFleet = async (
  settings: Settings,
  method: string,
  params: object | undefined,
  flags: FleetCallFlags,
): Promise<void> => {
  const { where = "", json = false } = flags;
  if (flags.dryRun === true) return dryRun(settings, where, json);
  const path = flags.resume ?? newJournal(settings);
  const text = params === undefined ? "" : JSON.stringify(params);
  const asked = {
    url: settings.httpUrl(),
    account: settings.accountName(),
    method,
    params_sha256: createHash("sha256").update(text).digest("hex"),
    where,
  };
  const journal = await Journal.open(path, asked, () => matchingIds(settings, where));
  if (flags.resume === undefined) printStatus(`journal: ${path}`);
  const line = new ProgressLine();
  try {
    // Before anything is called.
    if (flags.junit !== undefined) checkReport(flags.junit);
    const total = journal.head.agents.length;
    const print = (outcome: FleetOutcome): void => {
      line.clear();
      const shown = lineOf(outcome);
      printResult({ json }, shown, lineText(shown));
    };
    const before = journal.outcomes().filter((one) => isSettled(one, flags.idempotent === true));
    for (const outcome of before) print(outcome);
    let done = before.length;
    let bad = before.filter(({ outcome }) => outcome !== "ok").length;
    const told = (outcome: FleetOutcome): void => {
      print(outcome);
      done++;
      if (outcome.outcome !== "ok") bad++;
      line.show(`${bad} not ok,`, done, total, "agents");
    };
    const signalled =
      done < total && (await callLeft(settings, journal, before, params, flags, told));
    const ended = signalled && done < total;
    line.clear();
    const outcomes = journal.outcomes();
    printStatus(`${total} agents: ${outcomesText(outcomes)}`);
    if (ended) {
      const words = `blindrelay call --where ${JSON.stringify(where)} ${method}`;
      const more = params === undefined ? "" : " with the same parameters";
      printStatus(`interrupted: ${words} --resume ${path}${more} goes on`);
    }
    if (flags.junit !== undefined)
      writeReport(flags.junit, renderJunit(method, outcomes.map(lineOf)));
    if (outcomes.length === total && outcomes.every(({ outcome }) => outcome === "ok")) return;
    throw new Failure("expectation", ended ? "interrupted" : "not all agents are ok");
  } finally {
    line.clear();
    await journal.close();
  }
};
