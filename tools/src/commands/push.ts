/** `blindrelay push`: sends a device program over the relay, on trial until it is confirmed. */
import type { SourceMap } from "@blindrelay/agent-sdk/board";
import { type Client, type FleetOutcome, outcomeOf, rollOut } from "@blindrelay/client-sdk";
import { MAX_REPORT_LENGTH } from "@blindrelay/protocol";
import { Failure, wholeNumber } from "@blindrelay/protocol/command-line";
import { InvalidArgumentError } from "commander";
import { accountRest, listAgents } from "../account/account.ts";
import { agentWith } from "../account/agent-with.ts";
import { withClient } from "../account/connect.ts";
import { presentSecret } from "../account/rekey.ts";
import { checkToken } from "../base/check-token.ts";
import type { Command } from "../base/command.ts";
import { abortOnInterrupt, rejectOnInterrupt } from "../base/interrupted.ts";
import { type JsonFlag, printJson, printStatus, printText } from "../base/output.ts";
import { keepBuild } from "../config/kept-builds.ts";
import type { Secret, Settings } from "../config/settings.ts";
import { ProgressLine } from "../flash/progress.ts";
import { aboutAgent } from "../fleet/agents.ts";
import { addRolloutFlags, type FleetFlags, WHERE } from "../fleet/flags.ts";
import { programsFor } from "../push/programs.ts";
import { readPushKey } from "../push/push-key.ts";
import { type Programs, type Pushed, PushedAgent, TakesNone } from "../push/push-one.ts";
import type { Context } from "./context.ts";

const CONNECT_LIMIT_MS = 15_000;
const MAX_VERSION = 32;

interface PushFlags extends JsonFlag, FleetFlags {
  readonly all?: boolean;
  readonly firmwareVersion?: string;
  readonly modules?: string;
  readonly pushKey?: string;
  readonly timeout: number;
  readonly wait?: boolean;
}

const version = (value: string): string => {
  if (value.length <= Math.min(MAX_VERSION, MAX_REPORT_LENGTH) && /^[ -~]+$/.test(value))
    return value;
  throw new InvalidArgumentError(`1 to ${MAX_VERSION} printable ASCII characters`);
};

export const addPush = (cli: Command, context: Context): void => {
  const command = cli
    .command("push")
    .description("send a device program to an agent over the relay, which cannot read it")
    .argument("<agent>", "the agent's id; left out with --where and --all")
    .argument(
      "[file]",
      "export default (agent) => { agent.handle(…) }; .js or .ts, or its byte code",
    )
    .option("--where <selector>", WHERE)
    .option("--all", "every agent of the account that is online and in the keyring");
  addRolloutFlags(command)
    .option("--firmware-version <version>", "of the program; the relay shows it", version)
    .option("--modules <dir>", "where modules are that the program requires and the board lacks")
    .option("--push-key <file>", "for agents that were provisioned with this push key")
    .option(
      "--timeout <seconds>",
      "until the agent is back with it, or goes back",
      wholeNumber(10, 3_600),
      120,
    )
    .option(
      "--wait",
      "wait for the agent to come online, however long, such as a board that sleeps",
    )
    .option("--json", "one JSON document: what happened, also at a failure")
    .example(`
  blindrelay push pump-7 ./valve.js --firmware-version 1.5.0
  blindrelay push pump-7 ./valve.js --wait    # a board that sleeps
  blindrelay push ./valve.js --where label.site=hall-7 --staged 5% --abort-over 2%

The program is checked, sent sealed, stored beside the running one, verified by its SHA-256, and
started on trial. It is kept once the agent is online with it and answers; if it throws, hangs, runs
out of memory or does not come back in time, the agent restarts with the previous program. Pushing
requires the agent's end-to-end secret and, if it was provisioned with --push-key, the same file.
With --where or --all (all agents), those that are online and in the keyring are pushed to, with
--staged in stages; the first failure stops the rollout, or with --abort-over more failures than
that: pushes in progress are completed, the other agents keep their program; agents that do not
accept programs are listed and skipped. Ctrl-C lets pushes in progress complete, and the same
command goes on. Exit codes: 1 the trial failed; 2 usage, or boards do not run the program; 3 the
agent does not accept programs; 4 it is offline; 5 refused; 6 no answer; 7 no room for the program.
With --where or --all: 1 for any failure, and if no agent matches; 3 or 4 if no agent accepts
programs or none is online.`)
    .action(async (first: string, second: string | undefined, flags: PushFlags) => {
      const many = flags.all === true || flags.where !== undefined;
      const isStaged = flags.staged !== undefined || flags.abortOver !== undefined;
      const isBoth = flags.all === true && flags.where !== undefined;
      if (many !== (second === undefined) || (!many && isStaged) || isBoth) {
        const text =
          "name an agent and a file, or a file with --where SELECTOR or --all (and --staged SHARE)";
        throw new Failure("usage", text);
      }
      if (many && flags.wait === true) {
        throw new Failure(
          "usage",
          "--wait is for one agent: many are pushed to if they are online",
        );
      }
      const file = second ?? first;
      const pushKey = flags.pushKey === undefined ? null : readPushKey(flags.pushKey);
      const programs = programsFor(file, flags.firmwareVersion ?? null, flags.modules);
      const job = { settings: context.settings(), file, programs, pushKey, flags };
      if (many) await pushToMany(job);
      else await pushToOne(job, first);
    });
};

/** What is pushed, and how. */
interface Job {
  readonly settings: Settings;
  readonly file: string;
  readonly programs: Programs;
  readonly pushKey: string | null;
  readonly flags: PushFlags;
}

/** `line`: what its progress is shown on; null: nothing. `begun` is called before it is sent. */
const pushTo = async (
  { settings, programs, pushKey, flags }: Job,
  client: Client,
  agentId: string,
  secret: Secret,
  line: ProgressLine | null,
  begun: () => void = () => undefined,
): Promise<Pushed> => {
  const { timeout: seconds, wait: waits = false } = flags;
  const progress = (done: number, total: number): void => line?.show(agentId, done, total);
  const notice = (text: string): void => {
    line?.clear();
    if (line !== null) printStatus(text);
  };
  checkToken(secret.agentToken, "e2e", "agent token");
  const deadline = performance.now() + seconds * 1000;
  const present = await presentSecret(client, settings, agentId, secret, { deadline, waits });
  const handle = agentWith(client, agentId, present);
  const agent = new PushedAgent(agentId, handle, present.agentToken, notice);
  let sent: SourceMap | null = null;
  const sends = (id: string, map: SourceMap): void => {
    sent = map;
    begun();
    keepBuild(settings.buildsDir, id, map, null);
  };
  const pushed = await agent.push(programs, { seconds, pushKey, waits, progress, sends });
  if (sent !== null) keepBuild(settings.buildsDir, pushed.id, sent, { agentId, port: null });
  return pushed;
};

const pushToOne = async (job: Job, agentId: string): Promise<void> => {
  const { settings, file, flags } = job;
  const secret = settings.checkedSecretOf(agentId);
  using line = new ProgressLine();
  const waits = flags.wait === true;
  let left = "nothing was sent";
  const stopped = rejectOnInterrupt(() => left);
  const orStopped = <T>(work: Promise<T>): Promise<T> => Promise.race([work, stopped]);
  const begun = (): void => {
    left = `${agentId} keeps or returns to the program that it had, unless this one is confirmed`;
  };
  const push = (client: Client): Promise<Pushed> =>
    orStopped(pushTo(job, client, agentId, secret, line, begun));
  try {
    const limitMs = waits ? null : CONNECT_LIMIT_MS;
    const pushed = await orStopped(withClient(settings, limitMs, push, { waits }));
    line.clear();
    if (flags.json === true) printJson({ agent_id: agentId, ...pushed });
    else if (pushed.unchanged) printStatus(`${agentId} runs it already (${pushed.version})`);
    else printText(`${agentId} runs ${file} now (${pushed.version})`);
  } catch (error) {
    // As in the list of a push to many.
    if (flags.json === true && error instanceof Failure)
      printJson({ agent_id: agentId, reason: error.message });
    throw error;
  }
};

/** Concurrent pushes: each is a session with many calls, here and on the relay. */
const AT_ONCE = 16;

/** How it went with one agent; `result`: whether it ran the program already. */
const outcomeOfPush = async (
  id: string,
  push: () => Promise<Pushed>,
): Promise<FleetOutcome<boolean>> => {
  try {
    return outcomeOf(id, "ok", null, (await push()).unchanged);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const away = error.kind === "unreachable" ? "offline" : "error";
    const kind = error instanceof TakesNone ? "skipped" : away;
    return outcomeOf(id, kind, error.message);
  }
};

interface FleetReport {
  readonly kept: string[];
  readonly unchanged: string[];
  readonly failed: { readonly agent_id: string; readonly reason: string | null }[];
  /** They do not accept programs. */
  readonly skipped: { readonly agent_id: string; readonly reason: string | null }[];
  /** Not started, because others had failed or a signal came. */
  readonly untouched: string[];
}

const emptyReport = (): FleetReport => ({
  kept: [],
  unchanged: [],
  failed: [],
  skipped: [],
  untouched: [],
});

/** Pushes to all that match, are online and have their secret in the keyring. */
const pushToMany = async (job: Job): Promise<void> => {
  const { settings, file, flags } = job;
  const agents = await listAgents(accountRest(settings), flags.where);
  if (flags.where !== undefined && agents.length === 0)
    throw new Failure("expectation", `no agent matches ${flags.where}`);
  const held = agents.filter(({ agent_id }) => settings.keptSecretOf(agent_id) !== null);
  const ids = held.filter(({ online }) => online).map(({ agent_id }) => agent_id);
  const offline = held.filter(({ online }) => !online).map(({ agent_id }) => agent_id);
  const foreign = agents.length - held.length;
  if (foreign > 0) printStatus(`${foreign} skipped: the keyring has no secret for them`);
  if (offline.length > 0) printStatus(`${offline.length} skipped: offline`);
  if (ids.length === 0) {
    if (flags.json === true) printJson({ ...emptyReport(), offline });
    throw new Failure("unreachable", "no agent to push to is online");
  }
  using line = new ProgressLine();
  const report = emptyReport();
  const begun = new Set<string>();
  const note = ({ agentId, outcome, result, error }: FleetOutcome<boolean>): void => {
    if (!begun.has(agentId)) return;
    if (outcome === "ok") (result === true ? report.unchanged : report.kept).push(agentId);
    else
      report[outcome === "skipped" ? "skipped" : "failed"].push({
        agent_id: agentId,
        reason: error,
      });
  };
  await withClient(settings, CONNECT_LIMIT_MS, async (client) => {
    const push = (agentId: string): Promise<FleetOutcome<boolean>> => {
      begun.add(agentId);
      // From the keyring: a secret in the environment belongs to one agent.
      const secret = settings.keptSecretOf(agentId) as Secret;
      return outcomeOfPush(agentId, () => pushTo(job, client, agentId, secret, null));
    };
    const { staged, abortOver } = flags;
    // Without a limit the first failed trial ends it: the next one would hardly be better.
    const limits = abortOver === undefined ? { abortOver: 0, abortFrom: 1 } : { abortOver };
    const signal = abortOnInterrupt("ending when the pushes in progress are completed");
    const outcomes = rollOut(ids, push, {
      ...limits,
      signal,
      staged,
      atOnce: AT_ONCE,
      // Those that accept no programs are not the fault of this one.
      isWell: ({ outcome }) => outcome === "ok" || outcome === "skipped",
    });
    for await (const outcome of outcomes) {
      note(outcome);
      line.show(`${report.failed.length} failed,`, begun.size, ids.length, "agents");
    }
    line.clear();
    report.untouched.push(...ids.filter((id) => !begun.has(id)));
    if (flags.json === true) printJson({ ...report, offline });
    else printText(`${report.kept.length + report.unchanged.length} of ${ids.length} run ${file}`);
    for (const { agent_id: id, reason } of [...report.skipped, ...report.failed])
      printStatus(aboutAgent(id, reason ?? ""));
    if (report.skipped.length === ids.length)
      throw new Failure("agentError", "no agent that is online accepts programs over the relay");
    const untouched = `${report.untouched.length} were not updated`;
    if (signal.aborted && report.untouched.length > 0)
      throw new Failure("interrupted", `interrupted: ${untouched}; the same command goes on`);
    if (report.failed.length === 0) return;
    const text = `${report.failed.length} failed, and ${untouched}`;
    throw new Failure("expectation", text);
  });
};
