/**
 * One run in the live world: a scenario's plan over real sockets, against our own relay or an
 * external one. The fleet is in separate processes, the clients are in this one.
 *
 * Whatever happens, the run ends in bounded time, and every process, folder and agent that it
 * created is removed.
 */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { relayUrl } from "@blindrelay/client-sdk/node";
import { Failure } from "@blindrelay/protocol/command-line";
import { aborted } from "../base/aborted.ts";
import { ExecutionOracle } from "../oracle/executions.ts";
import { LivenessOracle } from "../oracle/liveness.ts";
import { makeReport } from "../report/make-report.ts";
import { Measurements } from "../report/measure.ts";
import type { Progress } from "../report/progress.ts";
import type { Report } from "../report/report.ts";
import { type Threshold, thresholdsOf } from "../report/thresholds.ts";
import { makePlan, type Plan, planHash, plannedOf } from "../scenario/plan.ts";
import type { Scenario } from "../scenario/schema.ts";
import { LiveAgents, programsOf } from "./agents.ts";
import type { BoardsOptions } from "./boards.ts";
import { LiveCalls } from "./calls.ts";
import {
  callsMs,
  checkExecutions,
  checkPresence,
  checkWhole,
  leastMemory,
  SETTLE_MS,
  settle,
  wholeLimitMs,
} from "./checks.ts";
import { Clients } from "./clients.ts";
import { LiveFaults } from "./faults.ts";
import { type FiguresPort, openFigures } from "./figures-port.ts";
import { FleetChildren, type FleetReport } from "./fleet-children.ts";
import type { OrderedAgent } from "./fleet-messages.ts";
import { missingDevices } from "./missing.ts";
import { ClientNetworks } from "./networks.ts";
import { LiveOracles } from "./oracles.ts";
import { DRAIN_MS, LiveRelay } from "./relay.ts";
import { RelayFigures } from "./relay-figures.ts";
import { Sampler } from "./sampler.ts";

export interface LiveOptions {
  seed: number;
  progress: Progress;
  signal: AbortSignal;
  hardStopMs?: number;
  /** An external relay: its http base. */
  url?: string;
  /** Serves figures while it runs, on this port of loopback; 0 picks one. */
  metricsPort?: number;
  /** So many processes share the agents; defaults to 1. */
  processes?: number;
  /** Paths of the boards' engines that the scenario requires. */
  engines?: BoardsOptions["engines"];
}

/** So that the start of a fleet is not a flood, and what a relay has to answer at once. */
const PACE = { connectionsPerSecond: 2_000, connectingAtOnce: 256 };
/** Many times what they take alone: cores may be shared with much other work. */
const SET_UP_LIMIT_MS = { fixed: 60_000, each: 100 };
const REASON_WAIT_MS = 500;
const LOOK_MS = 10;

export async function runLive(
  scenario: Scenario,
  folder: string,
  options: LiveOptions,
): Promise<Report> {
  const plan = makePlan(scenario, options.seed);
  const thresholds = thresholdsOf(scenario);
  const data = await mkdtemp(join(tmpdir(), "blindrelay-live-"));
  const run = new LiveRun({ scenario, plan, thresholds, folder, data, options });
  const interrupt = (): void => run.stopping.abort(options.signal.reason);
  options.signal.addEventListener("abort", interrupt, { once: true });
  if (options.signal.aborted) interrupt();
  let figures: FiguresPort | null = null;
  try {
    if (options.metricsPort !== undefined) {
      figures = await openFigures(options.metricsPort, run.measured);
      options.progress.say(`figures at ${figures.url}`);
    }
    await run.go();
  } catch (error) {
    if (error instanceof Failure) throw error;
    // A crashed relay first shows as failed requests, but its end is the better reason.
    await Promise.race([aborted(run.stopping.signal), delay(REASON_WAIT_MS)]);
    run.stopping.abort(error);
  } finally {
    options.progress.stop();
    options.signal.removeEventListener("abort", interrupt);
    figures?.close();
    await run.stop();
    await rm(data, { recursive: true, force: true, maxRetries: 5 });
  }
  return run.report();
}

interface LiveRunSetup {
  scenario: Scenario;
  plan: Plan;
  thresholds: readonly Threshold[];
  /** What paths of programs are relative to. */
  folder: string;
  /** For files of the run. */
  data: string;
  options: LiveOptions;
}

class LiveRun {
  readonly stopping = new AbortController();
  private readonly startedAt = new Date();
  private readonly setup: LiveRunSetup;
  readonly measured = new Measurements(() => this.elapsedMs() * 1000);
  private readonly oracles = new LiveOracles((reason) => this.stopping.abort(reason));
  private readonly liveness: LivenessOracle;
  private readonly executions = new ExecutionOracle((what) =>
    this.oracles.violate("exactly-once", what),
  );
  private readonly figures = new RelayFigures(this.measured, (what) =>
    this.oracles.violate("bounds", what),
  );
  private readonly relay: LiveRelay;
  private readonly agents: LiveAgents;
  private readonly timers: NodeJS.Timeout[] = [];
  private fleet: FleetChildren | null = null;
  private sampler: Sampler | null = null;
  private faults: LiveFaults | null = null;
  private calls: LiveCalls | null = null;
  private clients: Clients | null = null;
  private fleetReport: FleetReport | null = null;
  private leak: string | null = null;
  private freeMemory: ReadonlyMap<string, number> = new Map();
  /** When the plan's time began. */
  private begunMs: number | null = null;
  private ranMs = 0;
  private isOver = false;

  constructor(setup: LiveRunSetup) {
    const { scenario, plan, data, options } = setup;
    const { stopping, figures, oracles } = this;
    const { progress } = options;
    this.setup = setup;
    this.measured.follow(setup.thresholds);
    const unserved = (what: string): void => oracles.violate("liveness", what);
    this.liveness = new LivenessOracle(unserved, scenario.allow);
    this.relay = new LiveRelay({
      externalUrl: options.url,
      folder: join(data, "relay"),
      figures,
      oracles,
      stopping,
      say: (text) => progress.say(text),
    });
    const { relay } = this;
    this.agents = new LiveAgents({ scenario, plan, relay, progress, signal: stopping.signal });
  }

  async go(): Promise<void> {
    const { plan, options } = this.setup;
    const { stopping, relay, agents, liveness, executions, oracles } = this;
    const { signal } = stopping;
    const { length: count } = plan.devices;
    const planMs = plan.endUs / 1000;
    const setUpMs = SET_UP_LIMIT_MS.fixed + SET_UP_LIMIT_MS.each * count;
    const setUpLimit = this.stopAfter(setUpMs, `making ${count} agents`);
    const limitMs = setUpMs + planMs + SETTLE_MS + callsMs(plan) + DRAIN_MS;
    this.stopAfter(options.hardStopMs ?? limitMs, "the run");
    const order = await agents.make(await relay.start());
    clearTimeout(setUpLimit);
    const { fleet, sampler } = await this.startFleet(order);
    const clients = this.play(fleet, sampler);
    await Promise.race([delay(planMs, null, { ref: false }), this.callsEnd(), aborted(signal)]);
    signal.throwIfAborted();
    clients.end();
    await settle(clients, fleet, plan);
    await checkWhole(fleet, count, stopping);
    signal.throwIfAborted();
    await checkExecutions({ plan, agents, clients, fleet, executions, oracles });
    const nowUs = this.elapsedMs() * 1000;
    this.freeMemory = await leastMemory(plan, clients);
    await checkPresence({ agents, fleet, relay, liveness, oracles, nowUs, signal });
    signal.throwIfAborted();
  }

  /** Ends everything that was started. */
  async stop(): Promise<void> {
    this.ranMs = this.elapsedMs();
    this.isOver = true;
    if (this.fleet !== null) {
      this.fleetReport = await this.fleet.report();
      for (const one of this.fleetReport?.uncaught ?? []) this.measured.programErrors.add(one);
      this.sampler?.sample();
    }
    this.relay.expectEnd();
    for (const timer of this.timers) clearTimeout(timer);
    this.sampler?.stop();
    this.faults?.stop();
    this.calls?.end();
    this.clients?.stop();
    await this.fleet?.stop();
    if (this.relay.externalUrl !== undefined) await this.agents.remove();
    await this.relay.stop();
    this.leak = await this.relay.findSecret(this.agents.devices);
  }

  report(): Report {
    const { measured, figures, fleetReport, leak } = this;
    const { scenario, plan, thresholds, options } = this.setup;
    const { signal } = this.stopping;
    const { missing = [], connected = 0, rssBytesPerAgent = null } = fleetReport ?? {};
    const away = new Set(missing.map(({ id }) => id));
    const online = new Map<string, number>();
    plan.devices.forEach(({ group }, n) => {
      const id = this.agents.devices[n]?.id;
      if (fleetReport === null || id === undefined || away.has(id)) return;
      online.set(group, (online.get(group) ?? 0) + 1);
    });
    const leaked = leak === null ? null : `the relay stored a secret in ${leak}`;
    return makeReport({
      world: "live",
      crypto: "real",
      scenario,
      plan,
      thresholds,
      startedAt: this.startedAt,
      ranS: this.ranMs / 1000,
      tookS: this.ranMs / 1000,
      stopped: signal.aborted ? String(signal.reason?.message ?? signal.reason) : leaked,
      measured,
      connected: online,
      freeMemory: this.freeMemory,
      oracles: this.oracles.results(options.url === undefined ? { found: leak } : null),
      failures: missingDevices(missing),
      relay: {
        rss_bytes_per_agent: figures.rssBytesPerAgent(connected),
        cpu_us_per_message: figures.cpuUsPerMessage(),
        messages: measured.counter("relay.forwarded"),
      },
      simulator: { rss_bytes_per_agent: rssBytesPerAgent },
      dropped: figures.dropped,
      programs: {},
      trace: planHash(plan),
    });
  }

  /** Starts the fleet; the plan's time begins when it resolves. */
  private async startFleet(
    agents: OrderedAgent[],
  ): Promise<{ fleet: FleetChildren; sampler: Sampler }> {
    const { scenario, plan, thresholds, folder, data, options } = this.setup;
    const { relay, measured, elapsedMs, stopping } = this;
    const order = {
      url: relayUrl(relay.url),
      ...PACE,
      seed: options.seed,
      timezone: scenario.timezone ?? "UTC",
      programs: programsOf(plan).map((name) =>
        name.startsWith("kind:") ? name : resolve(folder, name),
      ),
      ...(scenario.stubs === undefined ? {} : { stubs: resolve(folder, scenario.stubs) }),
      countsExecutions: true,
      engines: options.engines ?? {},
      agents,
    };
    await relay.readFigures();
    const fleet = new FleetChildren(order, options.processes ?? 1, data);
    const { pids } = fleet;
    const where = pids.length === 1 ? "process" : "processes";
    options.progress.say(`agents in ${where} ${pids.join(", ")}`);
    this.fleet = fleet;
    const { length: count } = plan.devices;
    const sampler = new Sampler({
      fleet,
      isShort: plan.endsWithCalls,
      count,
      relay,
      measured,
      thresholds,
      elapsedMs,
      stopping,
    });
    this.sampler = sampler;
    fleet.ended.then((how) => {
      if (!this.isOver) stopping.abort(new Error(`the fleet's ${how}`));
    });
    // A process takes a moment to load; the plan's time begins with its first message.
    await Promise.race([fleet.started, aborted(stopping.signal)]);
    stopping.signal.throwIfAborted();
    this.begunMs = performance.now();
    return { fleet, sampler };
  }

  /** Starts what happens in the plan's time: calls, faults and samples. */
  private play(fleet: FleetChildren, sampler: Sampler): Clients {
    const { scenario, plan, options } = this.setup;
    const { relay, agents, measured, oracles, liveness, executions, elapsedMs, stopping } = this;
    const { devices } = agents;
    const { tally } = measured;
    const seconds = Math.round(plan.endUs / 1e6);
    const [what, total, done] = plan.endsWithCalls
      ? (["calls", plannedOf(plan), () => tally.ok + tally.failed + tally.skipped] as const)
      : (["s live", seconds, () => Math.min(seconds, Math.floor(elapsedMs() / 1000))] as const);
    options.progress.start(what, total, done, () => measured.inWords());
    const networks = new ClientNetworks(scenario, plan);
    const faults = new LiveFaults({
      relay,
      fleet,
      devices,
      networks,
      liveness,
      elapsedMs,
      stopping,
    });
    this.faults = faults;
    const calls = new LiveCalls({
      plan,
      devices,
      measured,
      oracles,
      liveness,
      executions,
      revoked: faults.revoked,
      wholeMs: () => sampler.wholeMs,
      planMs: elapsedMs,
      signal: stopping.signal,
    });
    this.calls = calls;
    const clients = new Clients({
      url: relay.url,
      accountToken: relay.accountToken,
      devices,
      links: (client) => networks.linkOf(client),
      whole: fleet.whole,
      asked: (...call) => calls.asked(...call),
      ended: (call) => calls.ended(call),
      turnBegins: () => measured.tally.beginTurn(),
      turnEnded: (skipped) => measured.tally.endTurn(skipped),
    });
    this.clients = clients;
    clients.start(plan.loads);
    faults.start(plan.faults);
    sampler.start();
    this.timers.push(
      setTimeout(() => checkWhole(fleet, plan.devices.length, stopping), wholeLimitMs(plan)),
    );
    return clients;
  }

  /** Resolves when the plan ends with its calls, all are made, and no fault is left. */
  private async callsEnd(): Promise<void> {
    const { plan } = this.setup;
    const planned = plannedOf(plan);
    const lastMs = plan.faults.reduce((last, { endUs }) => Math.max(last, endUs), -1) / 1000;
    const { tally } = this.measured;
    const isOver = (): boolean =>
      plan.endsWithCalls &&
      tally.ok + tally.failed + tally.skipped === planned &&
      this.elapsedMs() > lastMs;
    while (!this.stopping.signal.aborted && !this.isOver && !isOver()) {
      await delay(LOOK_MS, null, { ref: false });
    }
  }

  /** From the beginning of the plan's time to `atMs` on the clock of `performance`; 0 before. */
  private readonly elapsedMs = (atMs = performance.now()): number =>
    this.begunMs === null ? 0 : atMs - this.begunMs;

  private stopAfter(ms: number, what: string): NodeJS.Timeout {
    const timer = setTimeout(() => {
      this.stopping.abort(new Error(`${what} took longer than ${Math.round(ms / 1000)} s`));
    }, ms);
    this.timers.push(timer);
    return timer;
  }
}
