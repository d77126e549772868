/**
 * One run in the live world: a scenario's plan over real sockets, against our own relay or an
 * external one. The fleet is in a separate process, the clients are in this one.
 *
 * Whatever happens, the run ends in bounded time, and every process, folder and agent that it
 * created is removed.
 */
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type CallError, relayUrl } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { EXIT, Failure } from "../failure.ts";
import type { BoardsOptions } from "../live/boards.ts";
import { type Called, type CallOutcome, Clients } from "../live/clients.ts";
import { type FleetChild, type FleetReport, startFleet } from "../live/fleet-child.ts";
import type { OrderedAgent } from "../live/fleet-messages.ts";
import { liveLinkPort } from "../live/link.ts";
import { stopChild } from "../live/processes.ts";
import { type Shape, Shaper, UNSHAPED } from "../live/shaped-link.ts";
import { type CallEnd, ExecutionOracle } from "../oracle/executions.ts";
import { LivenessOracle } from "../oracle/liveness.ts";
import { makePlan, type Plan, type PlannedDevice, type PlannedFault } from "../plan.ts";
import { Stream } from "../random-streams.ts";
import type { Report } from "../report/report.ts";
import type { NetworkSpec, Scenario } from "../scenario/schema.ts";
import { durationMs, sizeOf } from "../scenario/units.ts";
import { readUsage } from "../start/metrics.ts";
import type { Progress } from "../start/progress.ts";
import { type RelayChild, startAgain, startRelay } from "../start/relay.ts";
import {
  eachAtOnce,
  logIn,
  makeAgent,
  onlineAgents,
  RestError,
  removeAgent,
  rotateAgent,
} from "../start/rest.ts";
import { Measurements } from "../world/measure.ts";
import { type LiveOracle, liveReport } from "./live-report.ts";
import { RelayFigures } from "./relay-figures.ts";
import { reasonToAbort, type Threshold, thresholdsOf } from "./thresholds.ts";

export interface LiveOptions {
  seed: number;
  progress: Progress;
  signal: AbortSignal;
  hardStopMs?: number;
  /** An external relay: its http base. */
  url?: string;
  /** Paths of the boards' engines that the scenario requires. */
  engines?: BoardsOptions["engines"];
}

/** For an external relay's account; secrets are never passed in flags. */
const TOKEN_VARIABLE = "BLINDRELAY_ACCOUNT_TOKEN";
const CONNECTIONS_PER_SECOND = 2_000;
const SAMPLE_MS = 1_000;
/**
 * Time from a device's planned start to its login: a fixed part, one for each device of the fleet,
 * and one for each device in a board's engine.
 */
const WHOLE_LIMIT_MS = { fixed: 30_000, each: 10, board: 3_000 };
const SET_UP_LIMIT_MS = { fixed: 60_000, each: 20 };
/** For calls in flight, and devices that are connecting, at the end. */
const SETTLE_MS = 5_000;
/** Only for a fleet that hangs. */
const REPORT_LIMIT_MS = 10_000;
const CLEAN_UP_LIMIT_MS = 60_000;
/** For requests in progress at the end: each may still create an agent, which must be removed. */
const ANSWER_WAIT_MS = 5_000;
/** Time for relay and fleet to agree on who is online, once nothing happens any more. */
const AGREE_MS = 10_000;
/** The longest wait for the drain of a restarting relay. */
const DRAIN_MS = 20_000;
const REASON_WAIT_MS = 500;
const RELAY_STARTS = 10;
const RELAY_RETRY_MS = 1_000;

export async function runLive(
  scenario: Scenario,
  folder: string,
  options: LiveOptions,
): Promise<Report> {
  const plan = makePlan(scenario, options.seed);
  const data = await mkdtemp(join(tmpdir(), "blindrelay-live-"));
  const run = new LiveRun(scenario, plan, folder, data, options);
  const interrupt = (): void => run.stopping.abort(options.signal.reason);
  options.signal.addEventListener("abort", interrupt, { once: true });
  if (options.signal.aborted) interrupt();
  try {
    await run.go();
  } catch (error) {
    if (error instanceof Failure) throw error;
    // A crashed relay first shows as failed requests, but its end is the better reason.
    await Promise.race([aborted(run.stopping.signal), delay(REASON_WAIT_MS)]);
    run.stopping.abort(error);
  } finally {
    options.progress.end();
    options.signal.removeEventListener("abort", interrupt);
    await run.stop();
    await rm(data, { recursive: true, force: true, maxRetries: 5 });
  }
  return run.report();
}

class LiveRun {
  readonly stopping = new AbortController();
  private readonly startedAt = new Date();
  private readonly scenario: Scenario;
  private readonly plan: Plan;
  private readonly folder: string;
  private readonly data: string;
  private readonly options: LiveOptions;
  private readonly thresholds: readonly Threshold[];
  private readonly measured = new Measurements(() => this.elapsedMs() / 1000);
  private readonly devices: Called[] = [];
  private readonly shapers: (Shaper | null)[] = [];
  private readonly timers: NodeJS.Timeout[] = [];
  private readonly liveness = new LivenessOracle((what) => this.violate("liveness", what));
  private readonly executions = new ExecutionOracle((what) => this.violate("exactly-once", what));
  private readonly figures = new RelayFigures(this.measured, (what) =>
    this.violate("bounds", what),
  );
  /** Devices with a revoked token, and when the revocation was acknowledged. */
  private readonly revoked = new Map<number, number>();
  private readonly checked = new Set<LiveOracle>(["answers", "liveness", "revoked"]);
  private relay: RelayChild | null = null;
  private fleet: FleetChild | null = null;
  private clients: Clients | null = null;
  private accountToken = "";
  /** Created at the relay so far. */
  private made: string[] = [];
  private fleetReport: FleetReport | null = null;
  private violation: { oracle: LiveOracle; detail: string } | null = null;
  private leak: string | null = null;
  private begunMs: number | null = null;
  /** When every device came online. */
  private wholeMs: number | null = null;
  private ranMs = 0;
  private isRelayMeantToBeAway = false;
  private isOver = false;

  constructor(scenario: Scenario, plan: Plan, folder: string, data: string, options: LiveOptions) {
    this.scenario = scenario;
    this.plan = plan;
    this.folder = folder;
    this.data = data;
    this.options = options;
    this.thresholds = thresholdsOf(scenario);
  }

  async go(): Promise<void> {
    const { plan, options } = this;
    const { length: count } = plan.devices;
    const planMs = plan.endUs / 1000;
    const setUpMs = SET_UP_LIMIT_MS.fixed + SET_UP_LIMIT_MS.each * count;
    this.stopAfter(setUpMs, `making ${count} agents`);
    const hardStopMs = options.hardStopMs ?? setUpMs + planMs + 2 * SETTLE_MS + DRAIN_MS;
    this.stopAfter(hardStopMs, "the run", false);
    const order = await this.setUp();
    clearTimeout(this.timers.shift());
    await this.start(order);
    const { signal } = this.stopping;
    await Promise.race([delay(planMs, null, { ref: false }), aborted(signal)]);
    signal.throwIfAborted();
    this.clients?.end();
    await this.settle();
    await this.checkWhole();
    signal.throwIfAborted();
    await this.checkExecutions();
    await this.checkPresence();
    signal.throwIfAborted();
  }

  /** Ends everything that was started. */
  async stop(): Promise<void> {
    this.ranMs = this.elapsedMs();
    this.isOver = true;
    if (this.fleet !== null) {
      this.fleetReport = await this.askFleet();
      this.sample();
    }
    this.isRelayMeantToBeAway = true;
    for (const timer of this.timers) clearTimeout(timer);
    this.clients?.stop();
    await this.fleet?.stop();
    await this.lastFigures;
    if (this.options.url !== undefined) await this.removeAgents();
    await this.relay?.stop();
    this.leak = await findSecret(join(this.data, "relay", "store"), this.devices);
  }

  report(): Report {
    const { scenario, plan, options, measured, fleetReport } = this;
    const { signal } = this.stopping;
    return liveReport({
      scenario,
      plan,
      seed: options.seed,
      thresholds: this.thresholds,
      startedAt: this.startedAt,
      durationS: Number((this.ranMs / 1000).toFixed(3)),
      stopped: signal.aborted ? String(signal.reason?.message ?? signal.reason) : null,
      measured,
      connected: fleetReport?.connected ?? 0,
      missing: fleetReport?.missing ?? [],
      rssBytesPerAgent: fleetReport?.rssBytesPerAgent ?? null,
      relay: {
        rss_bytes_per_agent: this.figures.rssBytesPerAgent(fleetReport?.connected ?? 0),
        cpu_us_per_message: this.figures.cpuUsPerMessage(),
        messages: measured.counter("relay.forwarded"),
      },
      dropped: this.figures.dropped,
      checked: this.checked,
      violation: this.violation,
      leak: options.url === undefined ? { found: this.leak } : null,
    });
  }

  // ---- before the plan's time begins

  private async setUp(): Promise<OrderedAgent[]> {
    const { progress, url } = this.options;
    const { signal } = this.stopping;
    let restToken: string;
    if (url === undefined) {
      const relay = await startRelay(join(this.data, "relay"), signal);
      this.watchRelay(relay);
      progress.say(`relay at ${relay.url}, process ${relay.pid}`);
      const account = await logIn(relay, signal);
      this.accountToken = account.accountToken;
      restToken = account.accessToken;
    } else {
      restToken = process.env[TOKEN_VARIABLE] ?? "";
      this.accountToken = restToken;
      if (restToken === "") {
        throw new Failure(EXIT.usage, `--live needs the account token in ${TOKEN_VARIABLE}`);
      }
    }
    return this.makeAgents(restToken);
  }

  private async makeAgents(restToken: string): Promise<OrderedAgent[]> {
    const { plan, options } = this;
    const { signal } = this.stopping;
    // On an external relay, other agents' ids must not be taken.
    const prefix = options.url === undefined ? "" : `sim-${randomBytes(3).toString("hex")}-`;
    const order: OrderedAgent[] = [];
    const programs = this.programs();
    const late = options.url === undefined ? signal : abortedAfter(signal, ANSWER_WAIT_MS);
    options.progress.start("agents made", plan.devices.length, () => this.made.length);
    await eachAtOnce(plan.devices.length, async (n) => {
      const planned = plan.devices[n] as PlannedDevice;
      const id = `${prefix}${planned.id}`;
      signal.throwIfAborted();
      const relayToken = await makeAgent(this.at(), restToken, id, planned.id, late);
      this.made.push(id);
      const agentToken = makeToken("e2e", randomBytes(32));
      const { kind, version } = planned;
      this.devices[n] = { id, name: planned.id, kind, version, restarts: 0, agentToken };
      const shape = this.shapeOf(n, planned);
      order[n] = {
        id,
        name: planned.id,
        relayToken,
        agentToken,
        program: programs.indexOf(programOf(planned)),
        version,
        startMs: planned.startUs / 1000,
        restarts: this.isTarget(n, /^(device\.|operator\.)/),
        ...(planned.engine === undefined ? {} : { engine: planned.engine }),
        ...(shape === null ? {} : { shape }),
      };
    }).catch((error) => {
      throw this.explain(error);
    });
    return order;
  }

  /** What the user can do about a relay that refuses, or cannot be reached. */
  private explain(error: Error): Error {
    const { url } = this.options;
    if (url === undefined || this.stopping.signal.aborted) return error;
    if (error instanceof RestError && [401, 403].includes(error.status)) {
      return new Failure(EXIT.refused, `${url} refuses: ${error.message}`);
    }
    if (error instanceof RestError) return error;
    return new Failure(EXIT.unreachable, `${url} cannot be reached: ${error.message}`);
  }

  private programs(): string[] {
    return [...new Set(this.plan.devices.map(programOf))];
  }

  /** A separate network, if the scenario specifies one or a fault needs one. */
  private shapeOf(n: number, { group }: PlannedDevice): Shape | null {
    const own = this.scenario.devices.find((one) => one.group === group)?.network;
    const needed = this.isTarget(n, /^(net\.|device\.)/);
    return shapeFor({ ...this.scenario.network, ...own }, needed);
  }

  private isTarget(n: number, kinds: RegExp): boolean {
    return this.plan.faults.some(
      ({ spec, devices }) => kinds.test(spec.kind) && devices.includes(n),
    );
  }

  // ---- the plan's time

  private async start(agents: OrderedAgent[]): Promise<void> {
    const { plan, options } = this;
    const order = {
      url: relayUrl(this.at().url),
      connectionsPerSecond: CONNECTIONS_PER_SECOND,
      seed: options.seed,
      programs: this.programs().map((name) =>
        name.startsWith("kind:") ? name : resolve(this.folder, name),
      ),
      countsExecutions: true,
      engines: options.engines ?? {},
      agents,
    };
    await this.readFigures();
    const fleet = startFleet(order, this.data);
    this.fleet = fleet;
    fleet.ended.then((how) => {
      if (!this.isOver) this.stopping.abort(new Error(`the fleet's process ended (${how})`));
    });
    // A process takes a moment to load; its first sign is the start of the plan's time.
    await Promise.race([fleet.untilConnected(0), aborted(this.stopping.signal)]);
    this.stopping.signal.throwIfAborted();
    this.begunMs = performance.now();
    const seconds = Math.round(plan.endUs / 1e6);
    options.progress.start(
      "s live",
      seconds,
      () => Math.min(seconds, Math.floor(this.elapsedMs() / 1000)),
      () => this.measured.inWords(),
    );
    this.clients = new Clients({
      url: this.at().url,
      accountToken: this.accountToken,
      devices: this.devices,
      links: (client) => this.linkOf(client),
      asked: (_, device) => {
        this.measured.tally.sent += 1;
        this.measured.tally.kind(this.groupOf(device)).calls += 1;
      },
      ended: (outcome) => this.callEnded(outcome),
    });
    this.clients.start(plan.loads);
    for (const fault of plan.faults) this.schedule(fault);
    this.timers.push(setInterval(() => this.watch(), SAMPLE_MS));
    const lastMs = plan.devices.reduce((last, { startUs }) => Math.max(last, startUs), 0) / 1000;
    const boards = plan.devices.filter(({ engine }) => engine !== undefined);
    const ownMs = WHOLE_LIMIT_MS.each * plan.devices.length + WHOLE_LIMIT_MS.board * boards.length;
    const wholeMs = lastMs + WHOLE_LIMIT_MS.fixed + ownMs;
    this.timers.push(setTimeout(() => this.checkWhole(), wholeMs));
  }

  private linkOf(client: number) {
    const loads = this.plan.loads.flatMap((load) => load.clients.map(() => load));
    const { spec } = loads[client] as (typeof loads)[0];
    const needed = this.plan.faults.some(({ clients }) => clients.includes(client));
    const shape = shapeFor({ ...this.scenario.network, ...spec.network }, needed);
    const port = liveLinkPort({ gathers: true });
    if (shape === null) return port;
    const draws = new Stream(`${this.options.seed}/client ${client}/net`);
    const shaper = new Shaper(port, shape, draws);
    this.shapers[client] = shaper;
    return shaper;
  }

  private callEnded({ load, device, method, isFirst, fromMs, ...outcome }: CallOutcome): void {
    const { tally } = this.measured;
    const { id } = this.devices[device] as Called;
    const nowMs = performance.now();
    const { error, result } = outcome;
    this.executions.ended(id, endOf(error), load.spec.idempotent ?? false);
    const revokedMs = this.revoked.get(device);
    const isAnswer = error === null || error.remote !== undefined;
    if (isAnswer && revokedMs !== undefined && fromMs > revokedMs) {
      this.violate("revoked", `${id} answered a call that began after its token was revoked`);
    }
    if (error !== null) {
      const { remote, code, message } = error;
      tally.fail(id, remote === undefined ? code : `${code} ${remote.code}`, message);
      const isOver = this.stopping.signal.aborted || code === "ABORTED";
      // Before the fleet is complete, a device may well be offline.
      const isWhole = this.wholeMs !== null && fromMs >= this.wholeMs;
      if (remote === undefined && !isOver && isWhole) {
        const fromUs = (fromMs - (this.begunMs ?? 0)) * 1000;
        this.liveness.callFailed(
          fromUs,
          `a call of ${load.name} to ${id} ended with ${code}: ${message}`,
        );
      }
    } else if (outcome.isRight) {
      tally.succeed(id, tally.kind(this.groupOf(device)), (nowMs - fromMs) * 1000, isFirst);
    } else {
      this.measured.wrong += 1;
      const what = `${id} answered ${method} with ${JSON.stringify(result)?.slice(0, 200)}`;
      tally.fail(id, "WRONG_ANSWER", what);
      this.violate("answers", what);
    }
  }

  private groupOf(device: number): string {
    return (this.plan.devices[device] as PlannedDevice).group;
  }

  private watch(): void {
    this.sample();
    const why = reasonToAbort(this.thresholds, this.elapsedMs() * 1000, this.measured);
    if (why !== null) this.stopping.abort(new Error(why));
  }

  private sample(): void {
    const { measured, fleet } = this;
    const connected = fleet?.connected() ?? 0;
    measured.gaugeAt("agents.online", connected);
    const { devices } = this.plan;
    if ((fleet?.everConnected() ?? 0) >= devices.length) this.wholeMs ??= performance.now();
    measured.set("agents.reconnects", Math.max(0, (fleet?.logins() ?? 0) - devices.length));
    const { ok, failed } = measured.tally;
    const at_s = Number((this.elapsedMs() / 1000).toFixed(3));
    measured.series.push({ at_s, connected, ok, failed });
    this.lastFigures = this.readFigures();
  }

  private lastFigures: Promise<void> = Promise.resolve();

  /** Only for our own relay. */
  private async readFigures(): Promise<void> {
    const { relay } = this;
    if (relay === null || this.isRelayMeantToBeAway) return;
    const usage = await readUsage(relay.metricsUrl);
    if (usage === null || this.relay !== relay) return;
    this.checked.add("bounds");
    this.figures.heard(usage);
  }

  // ---- what must hold at the end

  /** For devices on Node, once no call is in flight. */
  private async checkExecutions(): Promise<void> {
    if ((this.clients?.underWay ?? 0) > 0) return;
    const report = await this.askFleet();
    if (report === null) return;
    this.checked.add("exactly-once");
    this.plan.devices.forEach(({ engine }, n) => {
      const { id } = this.devices[n] as Called;
      if (engine === undefined) this.executions.compare(id, report.executed[id] ?? 0);
    });
  }

  /** The relay's presence must agree with the fleet, unless a fault has just ended. */
  private async checkPresence(): Promise<void> {
    if (!this.liveness.isQuiet(this.elapsedMs() * 1000)) return;
    const { signal } = this.stopping;
    const endMs = performance.now() + AGREE_MS;
    let wrong: string[];
    do {
      const report = await this.askFleet();
      if (report === null) return;
      const missing = new Set(report.missing.map(({ id }) => id));
      const online = await onlineAgents(this.at(), this.accountToken, signal);
      wrong = this.made.filter((id) => online.has(id) === missing.has(id));
      if (wrong.length > 0) await delay(SAMPLE_MS);
    } while (wrong.length > 0 && performance.now() < endMs);
    this.checked.add("presence");
    const [id] = wrong;
    if (id === undefined) return;
    const more = wrong.length > 1 ? `, and of ${wrong.length - 1} more` : "";
    this.violate("presence", `the relay does not know whether ${id} is online${more}`);
  }

  private askFleet(): Promise<FleetReport | null> {
    const { fleet } = this;
    if (fleet === null) return Promise.resolve(null);
    return Promise.race([
      fleet.report(),
      fleet.ended.then(() => null),
      delay(REPORT_LIMIT_MS, null, { ref: false }),
    ]);
  }

  /**
   * A fleet that cannot be completed ends the run, which would otherwise measure a different fleet.
   */
  private async checkWhole(): Promise<void> {
    const { fleet } = this;
    const { length: count } = this.plan.devices;
    const ever = fleet?.everConnected() ?? 0;
    if (fleet === null || ever >= count || this.stopping.signal.aborted) return;
    const report = await this.askFleet();
    const codes = new Map<string, number>();
    for (const { code } of report?.missing ?? []) codes.set(code, (codes.get(code) ?? 0) + 1);
    const why = [...codes].map(([code, n]) => `${code} (${n})`).join(", ");
    this.stopping.abort(new Error(`only ${ever} of ${count} devices came online: ${why}`));
  }

  private async settle(): Promise<void> {
    const endMs = performance.now() + SETTLE_MS;
    const isBusy = (): boolean =>
      (this.clients?.underWay ?? 0) > 0 ||
      (this.fleet?.everConnected() ?? 0) < this.plan.devices.length;
    while (isBusy() && performance.now() < endMs) await delay(20);
  }

  // ---- faults

  private schedule(fault: PlannedFault): void {
    let begun = Promise.resolve();
    this.timers.push(
      setTimeout(() => {
        this.liveness.faultBegins(this.elapsedMs() * 1000);
        begun = this.play(fault, true);
      }, fault.atUs / 1000),
      setTimeout(async () => {
        // A relay that starts again may need longer than the plan gives it.
        await begun;
        await this.play(fault, false);
        this.liveness.faultEnds(this.elapsedMs() * 1000);
      }, fault.endUs / 1000),
    );
  }

  private async play(fault: PlannedFault, on: boolean): Promise<void> {
    const { spec, devices: agents, clients } = fault;
    try {
      if (spec.kind.startsWith("net.")) {
        if (agents.length > 0) this.fleet?.take({ do: "play", agents, fault: spec, on });
        for (const client of clients) this.shapers[client]?.play(spec, on);
      } else if (spec.kind === "device.reboot") this.reboot(fault, on);
      else if (spec.kind === "operator.rotate") await this.rotate(fault, on);
      else if (on) await this.restartRelay(fault);
    } catch (error) {
      if (this.stopping.signal.aborted) return;
      const { message } = error as Error;
      this.stopping.abort(new Error(`the fault ${spec.kind} could not be played: ${message}`));
    }
  }

  private reboot({ devices: agents, spec }: PlannedFault, on: boolean): void {
    for (const n of agents) (this.devices[n] as Called).restarts += 1;
    if (on) {
      this.fleet?.take({ do: "power off", agents });
      return;
    }
    if (spec.storage !== "lose") {
      this.fleet?.take({ do: "power on", agents });
      return;
    }
    // A boot count must never start over under the previous secret.
    const agentTokens = agents.map(() => makeToken("e2e", randomBytes(32)));
    agents.forEach((n, i) => {
      (this.devices[n] as Called).agentToken = agentTokens[i] as string;
    });
    this.fleet?.take({ do: "power on", agents, agentTokens });
  }

  /** The newest relay tokens of devices whose tokens were rotated. */
  private readonly relayTokens = new Map<number, string>();
  private rotations: Promise<void> = Promise.resolve();

  /**
   * Its beginning revokes the tokens, its end gives the devices their newest ones, because another
   * rotation may have begun since. So rotations run one after another.
   */
  private async rotate({ devices: agents }: PlannedFault, on: boolean): Promise<void> {
    if (on) {
      this.rotations = this.rotations.then(() =>
        eachAtOnce(agents.length, async (i) => {
          const n = agents[i] as number;
          const { id } = this.devices[n] as Called;
          const { signal } = this.stopping;
          const token = await rotateAgent(this.at(), this.accountToken, id, signal);
          this.relayTokens.set(n, token);
          this.revoked.set(n, performance.now());
        }),
      );
      return this.rotations;
    }
    await this.rotations;
    for (const n of agents) {
      this.revoked.delete(n);
      (this.devices[n] as Called).restarts += 1;
    }
    const relayTokens = agents.map((n) => this.relayTokens.get(n) as string);
    this.fleet?.take({ do: "power off", agents });
    this.fleet?.take({ do: "power on", agents, relayTokens });
  }

  private async restartRelay({ spec, atUs, endUs }: PlannedFault): Promise<void> {
    const { relay } = this;
    if (relay === null) throw new Error("it is another's relay");
    this.isRelayMeantToBeAway = true;
    if (spec.kind === "relay.crash") relay.process.kill("SIGKILL");
    else await stopChild(relay.process, () => relay.process.kill("SIGTERM"), DRAIN_MS);
    await relay.ended;
    await delay((endUs - atUs) / 1000);
    if (this.stopping.signal.aborted) return;
    const { password, url } = relay;
    const known = { password, port: new URL(url).port };
    const { signal } = this.stopping;
    const next = await this.startAgain(known, signal);
    this.isRelayMeantToBeAway = false;
    this.watchRelay(next);
  }

  /** Another process's outgoing connection may have taken the port for a moment. */
  private async startAgain(
    known: { password: string; port: string },
    signal: AbortSignal,
  ): Promise<RelayChild> {
    for (let tries = 1; ; tries++) {
      try {
        return await startAgain(join(this.data, "relay"), known, signal);
      } catch (error) {
        if (tries === RELAY_STARTS || signal.aborted) throw error;
        await delay(RELAY_RETRY_MS);
      }
    }
  }

  private watchRelay(relay: RelayChild): void {
    this.relay = relay;
    this.figures.started();
    relay.ended.then((how) => {
      if (this.relay !== relay || this.isRelayMeantToBeAway) return;
      this.stopping.abort(new Error(`the relay ended (${how})`));
    });
  }

  // ---- throughout the run

  private at(): { url: string } {
    return { url: (this.options.url ?? this.relay?.url ?? "").replace(/\/$/, "") };
  }

  private elapsedMs(): number {
    return this.begunMs === null ? 0 : performance.now() - this.begunMs;
  }

  private violate(oracle: LiveOracle, detail: string): void {
    this.violation ??= { oracle, detail };
    this.stopping.abort(new Error(`the oracle "${oracle}": ${detail}`));
  }

  private stopAfter(ms: number, what: string, isFirst = true): void {
    const timer = setTimeout(() => {
      this.stopping.abort(new Error(`${what} took longer than ${Math.round(ms / 1000)} s`));
    }, ms);
    if (isFirst) this.timers.unshift(timer);
    else this.timers.push(timer);
  }

  /** For an external relay. Reports what cannot be removed. */
  private async removeAgents(): Promise<void> {
    const { made, options } = this;
    if (made.length === 0) return;
    const signal = AbortSignal.timeout(CLEAN_UP_LIMIT_MS);
    let left = made.length;
    options.progress.start("agents removed", made.length, () => made.length - left);
    await eachAtOnce(made.length, async (i) => {
      await removeAgent(this.at(), this.accountToken, made[i] as string, signal);
      left -= 1;
    }).catch((error) => {
      options.progress.say(`${left} agents are left at the relay: ${error.message}`);
    });
    options.progress.end();
  }
}

const programOf = ({ kind, program }: PlannedDevice): string => program ?? `kind:${kind}`;

/** A device's own error may occur before or after it did something. */
const endOf = (error: CallError | null): CallEnd =>
  error === null
    ? "answered"
    : error.retryable && error.remote === undefined
      ? "retryable"
      : "unknown";

/** Live links have the network's own latency; a scenario's is added if it specifies one. */
function shapeFor(network: NetworkSpec, needed: boolean): Shape | null {
  if (!needed && Object.keys(network).length === 0) return null;
  const { latency, jitter, bandwidth } = network;
  return {
    ...UNSHAPED,
    latencyMs: latency === undefined ? 0 : durationMs(latency),
    jitterMs: jitter === undefined ? 0 : durationMs(jitter),
    bytesPerS: bandwidth === undefined ? 0 : sizeOf(bandwidth),
  };
}

/** The first end-to-end secret found in the relay's stored files; null if there is none. */
async function findSecret(folder: string, devices: readonly Called[]): Promise<string | null> {
  const secrets = new Set(devices.map(({ agentToken }) => agentToken));
  const files = await readdir(folder).catch(() => []);
  for (const file of files) {
    const text = await readFile(join(folder, file), "latin1").catch(() => "");
    for (const [found] of text.matchAll(/e2e_[0-9A-Za-z]{49}/g)) {
      if (secrets.has(found)) return file;
    }
  }
  return null;
}

/** Aborts `ms` after `signal` does. */
function abortedAfter(signal: AbortSignal, ms: number): AbortSignal {
  const late = new AbortController();
  aborted(signal).then(() => setTimeout(() => late.abort(signal.reason), ms).unref());
  return late.signal;
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((done) => {
    if (signal.aborted) done();
    signal.addEventListener("abort", () => done(), { once: true });
  });
}
