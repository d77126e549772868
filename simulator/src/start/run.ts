/**
 * The whole path, once: a new relay, a fleet of agents, clients that call every one of them, a
 * report. After any failure, the run ends in bounded time with a report that names the failure, and
 * removes every process and folder that it created.
 */
import { rmSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { relayUrl } from "@blindrelay/client-sdk/node";
import { aborted } from "../aborted.ts";
import { KINDS, ownRole, type Role } from "../devices/kinds.ts";
import { callAll } from "../live/caller.ts";
import { type FleetChild, type FleetReport, startFleet } from "../live/fleet-child.ts";
import { readUsage } from "../live/metrics.ts";
import { type RelayChild, startRelay } from "../live/relay-process.ts";
import { logIn, type MadeAgent, makeAgents } from "../live/rest.ts";
import type { Progress } from "../report/progress.ts";
import type { Report } from "../report/report.ts";
import { Tally } from "../report/tally.ts";
import { Timeline } from "../report/timeline.ts";
import { buildReport, type RunSettings } from "./build-report.ts";

/** Well within what a relay's listen queue and two cores can handle. */
const CONNECTIONS_PER_SECOND = 2_000;
/** Enough to keep two cores busy; more would only measure the queue. */
const CALLS_AT_ONCE = 64;
const CALL_TIMEOUT_MS = 10_000;
/**
 * Hard limits, many times what a slow machine needs: a fixed part, and a part for each agent or
 * call.
 */
const SET_UP_LIMIT_MS = { fixed: 60_000, each: 20 };
const CONNECT_LIMIT_MS = { fixed: 30_000, each: 10 };
const CALL_LIMIT_MS = { fixed: 30_000, each: 5 };
const REASON_WAIT_MS = 500;

/**
 * Runs once. Resolves with the report, whether the run was successful or not; `interrupted` ends it
 * early. Rejects only if there is nothing to report, for example if the folder for temporary files
 * cannot be written.
 */
export async function run(
  flags: RunSettings,
  progress: Progress,
  interrupted: AbortSignal,
): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), "blindrelay-start-"));
  // It contains a key and tokens, so it is deleted even if the user does not wait for the end.
  const remove = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once("exit", remove);
  const stopping = new AbortController();
  const interrupt = (): void => stopping.abort(interrupted.reason);
  interrupted.addEventListener("abort", interrupt, { once: true });
  if (interrupted.aborted) interrupt();
  const journey = new Journey(flags, progress, stopping);
  try {
    await journey.go(folder);
  } catch (error) {
    // A crashed relay first shows as failed requests, but its end is the better reason.
    await Promise.race([aborted(stopping.signal), delay(REASON_WAIT_MS)]);
    stopping.abort(error);
  } finally {
    progress.end();
    interrupted.removeEventListener("abort", interrupt);
  }
  const report = journey.report();
  await journey.stop();
  await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  process.off("exit", remove);
  return report;
}

class Journey {
  private readonly flags: RunSettings;
  private readonly progress: Progress;
  private readonly stopping: AbortController;
  private readonly startedAt = new Date();
  private readonly timeline: Timeline;
  private readonly tally = new Tally(() => this.timeline.elapsed());
  private relay: RelayChild | null = null;
  private fleet: FleetChild | null = null;
  private agents: MadeAgent[] = [];
  private readonly roles: readonly Role[];
  private fleetReport: FleetReport | null = null;
  private relayRssBytesPerAgent: number | null = null;
  private relayCpuUsPerMessage: number | null = null;
  private relayMessages: number | null = null;

  constructor(flags: RunSettings, progress: Progress, stopping: AbortController) {
    this.flags = flags;
    this.progress = progress;
    this.stopping = stopping;
    this.roles = flags.program === null ? KINDS : [ownRole("agent", flags.calls)];
    this.timeline = new Timeline(() => ({
      connected: this.fleet?.connected() ?? 0,
      ok: this.tally.ok,
      failed: this.tally.failed,
    }));
  }

  async go(folder: string): Promise<void> {
    const { agents, callsPerAgent } = this.flags;
    const { relay, accountToken } = await this.phase("set-up", SET_UP_LIMIT_MS, agents, () =>
      this.setUp(folder),
    );
    await this.timeline.phase("connecting", () => this.connect(relay));
    await this.phase("calling", CALL_LIMIT_MS, agents * callsPerAgent, () =>
      this.call(relay, accountToken),
    );
  }

  /** Ends every process that was started. */
  async stop(): Promise<void> {
    this.timeline.stop();
    await Promise.all([this.fleet?.stop(), this.relay?.stop()]);
  }

  report(): Report {
    const { signal } = this.stopping;
    return buildReport({
      flags: this.flags,
      stopped: signal.aborted ? String(signal.reason?.message ?? signal.reason) : null,
      startedAt: this.startedAt,
      timeline: this.timeline,
      tally: this.tally,
      agents: this.agents,
      roles: this.roles,
      fleet: this.fleetReport,
      relayRssBytesPerAgent: this.relayRssBytesPerAgent,
      relayCpuUsPerMessage: this.relayCpuUsPerMessage,
      relayMessages: this.relayMessages,
    });
  }

  private async setUp(folder: string): Promise<{ relay: RelayChild; accountToken: string }> {
    const { agents: count, seed } = this.flags;
    const { signal } = this.stopping;
    const relay = await startRelay(folder, signal);
    this.relay = relay;
    this.endsWith("relay", relay.ended);
    this.progress.say(`relay at ${relay.url}, process ${relay.pid}`);
    this.progress.start("agents made", count);
    const account = await logIn(relay, signal);
    const kinds = this.roles.map(({ name }) => name);
    const onMade = (made: number): void => this.progress.update(made);
    const { accessToken } = account;
    this.agents = await makeAgents(relay, accessToken, count, seed, signal, onMade, 1, kinds);
    return { relay, accountToken: account.accountToken };
  }

  /** Ends when all agents are connected, or at the time limit with those that are. */
  private async connect(relay: RelayChild): Promise<void> {
    const { length: count } = this.agents;
    const before = await readUsage(relay.metricsUrl);
    const fleet = startFleet({
      url: relayUrl(relay.url),
      connectionsPerSecond: CONNECTIONS_PER_SECOND,
      seed: this.flags.seed,
      programs:
        this.flags.program === null
          ? KINDS.map(({ name }) => `kind:${name}`)
          : [this.flags.program],
      agents: this.agents.map(({ kind, ...agent }) => ({ ...agent, program: kind })),
    });
    this.fleet = fleet;
    this.endsWith("fleet's process", fleet.ended);
    this.progress.start("agents connected", count, () => fleet.connected());
    this.progress.say(`agents in process ${fleet.pid}`);
    await Promise.race([
      fleet.untilConnected(count),
      delay(CONNECT_LIMIT_MS.fixed + CONNECT_LIMIT_MS.each * count, null, { ref: false }),
      aborted(this.stopping.signal),
    ]);
    this.fleetReport = await fleet.report();
    const after = await readUsage(relay.metricsUrl);
    const connected = this.fleetReport?.connected ?? 0;
    if (before !== null && after !== null && connected > 0) {
      this.relayRssBytesPerAgent = Math.max(
        0,
        Math.round((after.rssBytes - before.rssBytes) / connected),
      );
    }
    this.stopping.signal.throwIfAborted();
    if (connected < count) {
      throw new Error(`${connected} of ${count} agents came online; no calls were made`);
    }
  }

  private async call(relay: RelayChild, accountToken: string): Promise<void> {
    const { callsPerAgent } = this.flags;
    const planned = this.agents.length * callsPerAgent;
    this.progress.start("calls answered correctly", planned, () => this.tally.ok);
    const before = await readUsage(relay.metricsUrl);
    await callAll(
      {
        url: relay.url,
        accountToken,
        agents: this.agents,
        roles: this.roles,
        callsPerAgent,
        concurrency: CALLS_AT_ONCE,
        callTimeoutMs: CALL_TIMEOUT_MS,
        signal: this.stopping.signal,
      },
      this.tally,
    );
    const after = await readUsage(relay.metricsUrl);
    if (before === null || after === null || after.forwarded === before.forwarded) return;
    this.relayMessages = after.forwarded - before.forwarded;
    this.relayCpuUsPerMessage = (after.cpuUs - before.cpuUs) / this.relayMessages;
  }

  /** A phase that stops the whole run if it takes too long. */
  private async phase<T>(
    name: string,
    limit: { fixed: number; each: number },
    parts: number,
    go: () => Promise<T>,
  ): Promise<T> {
    const ms = limit.fixed + limit.each * parts;
    const timer = setTimeout(() => {
      this.stopping.abort(new Error(`${name} took longer than ${Math.round(ms / 1000)} s`));
    }, ms);
    try {
      return await this.timeline.phase(name, go);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Stops the run when one of our processes ends. */
  private endsWith(name: string, ended: Promise<string>): void {
    ended.then((how) => this.stopping.abort(new Error(`the ${name} ended (${how})`)));
  }
}
