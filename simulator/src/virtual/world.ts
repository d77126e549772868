/**
 * A virtual world: relay, devices and clients in one thread, under one clock and one seed. It plays
 * a plan, and stops at the first violation of an oracle.
 *
 * An event is processed completely before the next; if it may have started promises (a look-up of
 * the relay, a call's outcome, an async device program), they all settle before time moves on.
 */
import type { AgentCore } from "@blindrelay/agent-sdk";
import type { CallError, Client, Presence } from "@blindrelay/client-sdk";
import { MAX_BINDINGS_PER_CONNECTION, OUTBOX_BYTES, SESSION_TTL_S } from "@blindrelay/protocol";
import { isForward, type Suite, type X25519 } from "@blindrelay/protocol/crypto";
import type { AgentSessions } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import type { Control } from "@blindrelay/relay-server/control";
import { getOrMake } from "../base/maps.ts";
import { Stream } from "../base/random-streams.ts";
import { exchange, type Inbox } from "../devices/exchange.ts";
import { Questions } from "../devices/questions.ts";
import { CallOracle, type CallOutcome, type CallRecord } from "../oracle/calls.ts";
import { ClusterOracle, type Party } from "../oracle/cluster.ts";
import { ForwardOracle } from "../oracle/forward.ts";
import { InvariantOracle } from "../oracle/invariants.ts";
import { LivenessOracle, RECOVERY_US } from "../oracle/liveness.ts";
import type { OracleName } from "../oracle/names.ts";
import { NonceOracle } from "../oracle/nonces.ts";
import { PacketOracle } from "../oracle/packets.ts";
import { type ObservedWire, RelayOracle } from "../oracle/relay.ts";
import { ToldOracle } from "../oracle/told.ts";
import { Measurements } from "../report/measure.ts";
import type { Timeline } from "../report/report.ts";
import { WRONG_ANSWER } from "../report/tally.ts";
import { type ParsedInvariant, parseInvariant } from "../scenario/invariants.ts";
import { DEFAULT_ACCOUNT, type Plan, type PlannedLoad, plannedOf } from "../scenario/plan.ts";
import { PROGRAM, type Scenario } from "../scenario/schema.ts";
import { durationMs, showMs, sizeOf } from "../scenario/units.ts";
import { VirtualClient } from "./client.ts";
import { Clock } from "./clock.ts";
import { Device } from "./device.ts";
import { startDriver } from "./driver.ts";
import { playFault } from "./faults.ts";
import { makeGlobals } from "./globals.ts";
import { Records } from "./hostile.ts";
import { type Asked, type Done, scheduleLoad } from "./loads.ts";
import { Net, type Observer, type Peer, type Wire } from "./net.ts";
import { VirtualNodes } from "./nodes.ts";
import { compileFunction, type LoadedProgram } from "./program.ts";
import { textOf } from "./program-slots.ts";
import type { RelayStore } from "./relay-store.ts";
import { SqlStore } from "./sql-store.ts";
import { ModelStore } from "./store.ts";
import { type TracedCall, timelineOf } from "./timeline.ts";
import { type Entry, Trace } from "./trace.ts";

export interface Violation {
  oracle: OracleName;
  detail: string;
  atUs: number;
}

export interface WorldOptions {
  scenario: Scenario;
  plan: Plan;
  /** By the path in the scenario, or by kind. */
  programs: ReadonlyMap<string, LoadedProgram>;
  /** Entries of the trace that can be read afterwards. */
  keptEntries?: number;
  /** The crypto; real by default. */
  suite?: Suite;
  x25519?: X25519;
  /** The trace has only the lengths of messages: see Trace. */
  keepsTimeline?: boolean;
  /** Also simulates the pings of idle links; the trace is the same. */
  playsAllPings?: boolean;
  /** The relay's own store, if it is not a model's. */
  control?: Control;
  /** Told of everything that happens, as the trace is. */
  watch?: (what: string, who: string, text: string) => void;
  /** Told of each line that a device's program or SDK logs. */
  logged?: (deviceId: string, atUs: number, text: string) => void;
  /** Asked after each sample; a reason ends the run. */
  stopsFor?: (nowUs: number, measured: Measurements) => string | null;
}

/** How long the world continues for calls that are in flight at the end. */
const SETTLE_US = 60_000_000;
/** The approximate maximum number of samples in a run, and of presence checks. */
const SAMPLES = 900;
const CHECKS = 300;
const CHECK_US = 10_000_000;
/** A client renews no session token that lives for longer than this: its TOKEN_RESERVE_MS. */
const RENEWAL_MS = 600_000;
/** The relay tells a new client of 32 agents in each tenth of a second. */
const SNAPSHOT_US = 100_000 / 32;
/** How soon a client is back that has lost its link without any fault. */
const BACK_US = 10_000_000;
/** How often to check for links of one agent on several nodes. */
const LINKS_US = 500_000;
/** Events of one microsecond: many times what the largest fleet has. */
const MAX_AT_ONCE = 2_000_000;
/** Real milliseconds between two checks whether to stop. */
const BREATH_MS = 50;

interface Call {
  record: CallRecord;
  places: string[];
  /** The handler has begun and has not settled. */
  running: boolean;
}

export class World implements Observer {
  readonly scenario: Scenario;
  readonly plan: Plan;
  readonly seed: number;
  readonly clock = new Clock();
  readonly traceLog: Trace;
  readonly measured = new Measurements(() => this.clock.nowUs);
  readonly net: Net;
  readonly store: RelayStore;
  readonly relay: VirtualNodes;
  readonly suite: Suite;
  readonly x25519: X25519;
  readonly devices: Device[];
  readonly clients: VirtualClient[];
  readonly globals: ReturnType<typeof makeGlobals>;
  readonly programs: ReadonlyMap<string, LoadedProgram>;
  readonly stubs: LoadedProgram | undefined;
  readonly liveness: LivenessOracle;
  readonly relayOracle: RelayOracle;
  readonly forwardOracle: ForwardOracle;
  /** Null: there is one node. */
  private readonly clusterOracle: ClusterOracle | null;
  /** Null: there are several nodes. */
  private readonly toldOracle: ToldOracle | null;
  pushes = 0;
  rekeys = 0;
  /** What the programs of its devices handle. */
  readonly methods = new Set<string>();
  violation: Violation | null = null;
  /** Why its time stands still; null: it does not. */
  stuck: string | null = null;
  /** By code, of the first call that failed with it. */
  readonly timelines = new Map<string, Timeline>();
  /** The first call of a load that was not as it must be. */
  failedLoad: string | null = null;
  /** The reason that ended the run, as `stopsFor` gave it. */
  stopped: string | null = null;
  private readonly stopsFor: NonNullable<WorldOptions["stopsFor"]>;
  private readonly watch: WorldOptions["watch"];
  private readonly logged: WorldOptions["logged"];
  private readonly nonces: NonceOracle;
  private readonly packets: PacketOracle;
  private readonly calls: CallOracle;
  /** Null: the programs promise nothing. */
  private readonly invariantOracle: InvariantOracle | null;
  /** Devices whose code has run in this event, and what the event was. */
  private readonly entered = new Set<Device>();
  private event = "";
  private readonly byPlace = new Map<string, Call>();
  private readonly presences = new Map<string, Map<string, boolean>>();
  /**
   * Peers whose login, or whose time to come back, was changed on its way, and that have not been
   * online since: who is told that its token is wrong waits for minutes, by contract.
   */
  private readonly spoiled = new Set<string>();
  private readonly questions = new Map<number, Questions>();
  private running: Device;
  private stirred = false;
  private online = 0;
  private connects = 0;
  /** Devices that were online at least once. */
  private reached = 0;
  private readonly outboxBytes: number;
  /** Before its session token ends, a client that is used gets another one. */
  private readonly renewalUs: number;
  private readonly isAlone: boolean;

  constructor(options: WorldOptions) {
    const { scenario, plan, programs } = options;
    this.scenario = scenario;
    this.plan = plan;
    this.seed = plan.seed;
    this.programs = programs;
    this.stubs = scenario.stubs === undefined ? undefined : programs.get(scenario.stubs);
    this.globals = makeGlobals(() => this.running, scenario.timezone);
    if (scenario.start !== undefined) this.clock.epochMs = Date.parse(scenario.start);
    this.watch = options.watch;
    this.logged = options.logged;
    this.stopsFor = options.stopsFor ?? (() => null);
    this.traceLog = new Trace(options.keptEntries ?? 0, options.keepsTimeline);
    this.outboxBytes =
      scenario.relay?.outbox === undefined ? OUTBOX_BYTES : sizeOf(scenario.relay.outbox);
    const ttlMs = durationMs(scenario.relay?.session_ttl ?? `${SESSION_TTL_S}s`);
    this.renewalUs = Math.min(ttlMs / 4, RENEWAL_MS) * 1000;
    const violate = (oracle: OracleName) => (detail: string) => this.violate(oracle, detail);
    this.nonces = new NonceOracle(violate("nonce"), (options.keptEntries ?? 0) > 0);
    this.packets = new PacketOracle((oracle, detail) => this.violate(oracle, detail));
    this.calls = new CallOracle(violate("exactly-once"), { nowMs: () => this.clock.nowMs() });
    this.liveness = new LivenessOracle(violate("liveness"), scenario.allow);
    const { relay = {} } = scenario;
    this.isAlone = (relay.nodes ?? 1) === 1;
    this.relayOracle = new RelayOracle((oracle, detail) => this.violate(oracle, detail), {
      isOnline: (agentId) => this.relay.isOnline(agentId),
      isAlone: this.isAlone,
      outboxBytes: this.outboxBytes,
    });
    this.clusterOracle = this.isAlone
      ? null
      : new ClusterOracle((oracle, detail) => this.violate(oracle, detail));
    const invariants = (scenario.invariants ?? []).map(({ devices: group, always }) => {
      const parsed = parseInvariant(String(always)) as ParsedInvariant;
      return { ...parsed, group, text: String(always), holds: compileFunction(parsed.source) };
    });
    this.invariantOracle =
      invariants.length === 0 ? null : new InvariantOracle(violate("invariants"), invariants);
    const delivered = (from: ObservedWire): void => this.relayOracle.delivered(from);
    this.toldOracle = this.isAlone ? new ToldOracle(violate("told"), delivered) : null;
    this.forwardOracle = new ForwardOracle(violate("forward"));
    const suite = this.nonces.watch(options.suite ?? nodeSuite());
    const isWatched = plan.devices.some(({ version }) => isForward(version));
    this.suite = isWatched ? this.forwardOracle.watch(suite) : suite;
    this.x25519 = options.x25519 ?? nodeX25519;
    const draws = new Stream(`${this.seed}/store`);
    const stored = {
      stored: (text: string) => this.relayOracle.kept(text, "the store"),
      requestsSaved: (hash: string, used: number) => this.relayOracle.requestsSaved(hash, used),
      told: (id: string, online: boolean) => {
        if (online === this.relay.isOnline(id)) return;
        this.violate("presence", `REST says that ${id} is ${online ? "online" : "offline"}`);
      },
      failed: (detail: string) => this.violate("bounds", detail),
      stir: () => this.stir(),
    };
    const latencyMs = durationMs(relay.store_latency ?? "1ms");
    const { control } = options;
    const acts = new Stream(`${this.seed}/operator`);
    this.store =
      control === undefined
        ? new ModelStore(this.clock, draws, stored, { latencyMs, ttlMs })
        : new SqlStore(this.clock, draws, stored, { latencyMs, control, acts });
    const watcher = {
      logged: (message: string, error: unknown) => this.relayLogged(message, error),
      stir: () => this.stir(),
      trace: (what: string, who: string, text: string) => this.trace(what, who, text),
      drained: () => this.relayOracle.drained(),
      startedAgain: () => this.liveness.disturbed(this.clock.nowUs),
      carried: (payload: Uint8Array) =>
        this.relayOracle.kept(Buffer.from(payload).toString("latin1"), "a message of the bus"),
    };
    this.relay = new VirtualNodes({
      count: relay.nodes ?? 1,
      clock: this.clock,
      store: this.store,
      shared: !this.isAlone && this.store instanceof ModelStore ? this.store : null,
      watcher,
      limits: { outboxBytes: this.outboxBytes },
      draws: new Stream(`${this.seed}/bus`),
    });
    if (plan.faults.some(({ spec }) => spec.attack === "replay")) {
      this.relay.records = new Records((id) => new Stream(`${this.seed}/${id}/records`));
    }
    this.net = new Net(this.clock, this.relay, this, options.playsAllPings !== true);
    this.devices = plan.devices.map((planned, number) => {
      const program = programs.get(planned.program ?? `kind:${planned.kind}`) as LoadedProgram;
      const token = this.store.issueAgent(planned.id, planned.account);
      return new Device(this, number, planned, token, program);
    });
    this.running = this.devices[0] as Device;
    this.clients = plan.loads.flatMap((load) =>
      load.clients.map((_, k) => {
        const id = `${load.name}/${k + 1}`;
        const presence = load.spec.presence === true;
        const address = `172.16.${this.seed & 255}.${k & 255}`;
        const account = load.spec.account ?? DEFAULT_ACCOUNT;
        const { network } = load;
        const { leaves = false } = load.spec;
        return new VirtualClient(this, { id, address, network, presence, account, leaves });
      }),
    );
    this.schedule();
  }

  // ---- the run

  /**
   * Plays the plan to its end, to the first violation, or until `stopsFor` ends it. `breathe` is
   * called occasionally with the completed share; it returns whether to continue.
   */
  async run(breathe: (done: number) => boolean = () => true): Promise<void> {
    const { clock, plan } = this;
    const { endUs } = plan;
    const { tally } = this.measured;
    const planned = plannedOf(plan);
    const lastFaultUs = plan.faults.reduce((last, fault) => Math.max(last, fault.endUs), -1);
    const isDone = (): boolean =>
      plan.endsWithCalls && tally.sent + tally.skipped === planned && clock.nowUs > lastFaultUs;
    await this.play(
      (atUs) => (tally.turns === 0 ? atUs > endUs || isDone() : atUs > endUs + SETTLE_US),
      () => breathe(Math.min(1, clock.nowUs / endUs)),
    );
    for (const row of await this.store.rows()) this.relayOracle.kept(row, "the store");
    this.finish();
  }

  /**
   * Processes events until none are left, an oracle reports a violation, `stopsFor` gives a reason,
   * `isOver` is true for the time of the next event, or `breathe`, which is called occasionally,
   * returns false.
   */
  async play(isOver: (nextUs: number) => boolean, breathe: () => boolean): Promise<void> {
    const { clock } = this;
    let breath = performance.now();
    let sinceUs = -1;
    let atOnce = 0;
    for (let n = 0; this.violation === null && this.stopped === null; n++) {
      const atUs = clock.nextUs();
      if (atUs === null || isOver(atUs)) break;
      atOnce = atUs === sinceUs ? atOnce + 1 : 0;
      sinceUs = atUs;
      if (atOnce > MAX_AT_ONCE) {
        this.stuck = this.whoHoldsTime();
        break;
      }
      clock.step();
      if (this.stirred) {
        this.stirred = false;
        await settled();
        while (this.store.working !== null) {
          await this.store.working;
          await settled();
        }
      }
      if (this.entered.size > 0) this.checkInvariants();
      if ((n & 1023) === 0 && performance.now() - breath > BREATH_MS) {
        await new Promise((resolve) => setImmediate(resolve));
        breath = performance.now();
        if (!breathe()) break;
      }
    }
  }

  /** Why its time does not go on: what is due now is so again and again. */
  private whoHoldsTime(): string {
    const next = this.clock.next();
    const who = next instanceof Device || next instanceof VirtualClient ? next.id : "something";
    const at = showMs(this.clock.nowMs());
    return `time stands still at ${at}: ${who} sets one timer after another for the same moment`;
  }

  /** The oracles' last checks. */
  finish(): void {
    if (this.violation === null) this.lastChecks();
    // `stopsFor` ended the run right after a sample.
    if (this.stopped === null) this.sample();
  }

  private schedule(): void {
    const { clock, plan } = this;
    this.relay.start();
    for (const device of this.devices) clock.at(device.plan.startUs, boot, device, null);
    let first = 0;
    for (const load of plan.loads) {
      const end = first + load.clients.length;
      scheduleLoad(this, load, this.clients.slice(first, end));
      first = end;
    }
    for (const [i, driver] of (this.scenario.drivers ?? []).entries()) {
      startDriver(this, driver, i, plan.endUs);
    }
    for (const fault of plan.faults)
      clock.at(fault.atUs, (world: World) => playFault(world, fault), this, null);
    const sampleUs = Math.max(1_000_000, Math.round(plan.endUs / SAMPLES));
    const sampling = (): void => {
      this.sample();
      this.stopped = this.stopsFor(clock.nowUs, this.measured);
      if (clock.nowUs + sampleUs < plan.endUs)
        clock.at(clock.nowUs + sampleUs, sampling, null, null);
    };
    clock.at(sampleUs, sampling, null, null);
    const checkUs = Math.max(CHECK_US, Math.round(plan.endUs / CHECKS));
    const checking = (): void => {
      this.check();
      if (clock.nowUs + checkUs < plan.endUs) clock.at(clock.nowUs + checkUs, checking, null, null);
    };
    clock.at(checkUs, checking, null, null);
    if (this.isAlone) return;
    const looking = (): void => {
      this.lookAtLinks();
      clock.at(clock.nowUs + LINKS_US, looking, null, null);
    };
    clock.at(LINKS_US, looking, null, null);
  }

  /** Makes one call, and counts how it ends. */
  call(asked: Asked, done: Done): void {
    const { load, client, device, question } = asked;
    const { spec } = load;
    const { method, params, timeoutMs = load.timeoutMs } = question;
    const idempotent = spec.idempotent ?? false;
    const record = this.calls.made(client.id, device.id, idempotent, timeoutMs);
    const call: Call = { record, places: [], running: false };
    const ended = this.counted(asked, String(record.marker), method);
    this.calling = call;
    const waitForAgent = spec.wait_for_agent ?? false;
    const signal = this.givesUp(load, client);
    const request = { method, params, timeoutMs, idempotent, waitForAgent, ...signal };
    client.call(device, request, (result, error) => {
      const outcome: CallOutcome = error === null ? { ok: true, result } : { ok: false, error };
      this.calls.ended(record, outcome);
      const isRight = ended(result, error);
      // A repeated execution is checked for as long as a packet can live.
      this.clock.after(CALL_MEMORY_MS, () => {
        this.calls.forget(record);
        for (const place of call.places) this.byPlace.delete(place);
      });
      done(result, error, isRight, call.running);
    });
    this.calling = null;
  }

  /** The same for a step of a sequence that is no call. */
  exchange(asked: Asked, inbox: Inbox, done: Done): void {
    const { load, client, device, question } = asked;
    const { kind, timeoutMs = load.timeoutMs } = question;
    const what = `${kind} ${question.method}`;
    const ended = this.counted(asked, what, what);
    client.use(
      device,
      (agent) => exchange(agent, inbox, question, timeoutMs, client.timer),
      (result, error) => {
        const isRight = ended(result, error);
        // Whether there is an event, and when a stream ends, is up to the program.
        done(result, error, isRight, kind === "event" || error?.code === "TIMED_OUT");
      },
    );
  }

  /**
   * Counts what is asked. The returned function counts how it ended, and returns whether as it
   * must. `name`: in the trace; `what`: in a timeline.
   */
  private counted({ client, device, question, isFirst }: Asked, name: string, what: string) {
    const { tally } = this.measured;
    const { group } = device.plan;
    const open = tally.asked({ device: device.id, group, method: question.method }, isFirst);
    const traced = { fromUs: this.clock.nowUs, client: client.id, device: device.id };
    return (result: unknown, error: CallError | null): boolean => {
      this.trace("outcome", `${client.id} ${device.id}`, `${name} ${error?.code ?? "ok"}`);
      const { isRight, code } = tally.judge(open, question, result, error);
      if (!isRight) this.keepTimeline(code ?? WRONG_ANSWER, what, traced);
      return isRight;
    };
  }

  loadFailed(what: string): void {
    this.failedLoad ??= what;
  }

  private calling: Call | null = null;

  /** With a signal, if calls of this load are given up. */
  private givesUp({ spec, name }: PlannedLoad, client: VirtualClient): { signal?: AbortSignal } {
    if (spec.abort_after === undefined) return {};
    const controller = new AbortController();
    const draws = new Stream(`${this.seed}/${name}/${client.id}/abort/${this.measured.tally.sent}`);
    this.clock.after(draws.below(durationMs(spec.abort_after)), () => {
      this.stir();
      controller.abort();
    });
    return { signal: controller.signal };
  }

  questionsTo({ id, number, plan }: Device): Questions {
    const device = this.devices[number] as Device;
    const made = () => new Questions(plan.kind, id, () => device.boots);
    return getOrMake(this.questions, number, made);
  }

  // ---- what devices and clients tell their world

  enter(device: Device): void {
    this.running = device;
    if (this.invariantOracle !== null) this.entered.add(device);
  }

  private checkInvariants(): void {
    const at = `${this.event === "" ? "a timer" : this.event} at ${showMs(this.clock.nowMs())}`;
    for (const device of this.entered) {
      this.running = device;
      this.invariantOracle?.check(device, at);
    }
    this.entered.clear();
    this.event = "";
  }

  stir(): void {
    this.stirred = true;
  }

  trace(what: string, who: string, text: string): void {
    this.traceLog.add(this.clock.nowUs, what, who, text);
    if (this.event === "" && this.entered.size > 0) this.event = `${what} ${who}`;
    this.watch?.(what, who, text);
  }

  corrupted({ id }: Peer, before: string, after: string): void {
    if (/^\{"type":"auth|"RESTARTING"/.test(before)) this.spoiled.add(id);
    this.packets.corrupted(after);
  }

  isSpoiled(id: string): boolean {
    return this.spoiled.has(id);
  }

  atPeer(wire: Wire, text: string): void {
    if (wire.peer instanceof VirtualClient) this.packets.sent(text);
  }

  atRelay(wire: Wire, text: string, direction: "up" | "down"): void {
    const { clusterOracle, toldOracle } = this;
    // What was changed on its way has no sender that could be told.
    if (toldOracle !== null && this.net.corrupted === 0) {
      const { nowUs } = this.clock;
      if (direction === "up") toldOracle.received(wire, text, partyOf(wire), nowUs);
      else toldOracle.sent(wire, text, partyOf(wire), nowUs);
    }
    if (clusterOracle !== null) {
      if (direction === "up") clusterOracle.received(wire, text, partyOf(wire));
      else clusterOracle.sent(wire, text, partyOf(wire));
    }
    if (direction === "up") this.relayOracle.received(wire, text);
    else this.relayOracle.sent(wire, text, wire.relayQueued());
  }

  programOf(text: string): LoadedProgram | null {
    for (const program of this.programs.values()) if (textOf(program) === text) return program;
    return null;
  }

  sessionsMade(device: Device, sessions: AgentSessions, agentToken: string): void {
    const { receive } = sessions;
    const { nonces, packets } = this;
    sessions.receive = (text, now) => {
      nonces.forgetOpened();
      const verdict = receive.call(sessions, text, now);
      packets.received(device.id, text, verdict, nonces.lastOpened, (sid) =>
        sessions.held().includes(sid),
      );
      if (verdict.kind === "answer" || verdict.kind === "message") device.answers(agentToken);
      return verdict;
    };
  }

  born(device: Device, core: AgentCore): void {
    this.spoiled.delete(device.id);
    const { nonces } = this;
    const { agent } = core;
    const { handle } = agent;
    agent.handle = (method, handler) => {
      this.methods.add(method);
      handle.call(
        agent,
        method,
        (params: unknown, context: { sid: string; notification: boolean }) => {
          const place = nonces.lastOpened;
          const call = context.notification ? undefined : this.byPlace.get(place);
          if (call === undefined) return handler(params, context);
          this.calls.executed(device.id, call.record.marker);
          if (this.invariantOracle !== null) this.event = callText(method, params);
          call.running = true;
          const result = handler(params, context);
          const over = (): void => {
            call.running = false;
          };
          if (typeof (result as Promise<unknown> | null)?.then === "function") {
            (result as Promise<unknown>).then(over, over);
          } else over();
          return result;
        },
      );
    };
  }

  changed(device: Device, online: boolean): void {
    this.online += online ? 1 : -1;
    this.trace(online ? "online" : "offline", device.id, "");
    if (!online) return;
    device.onlineSinceUs = this.clock.nowUs;
    this.connects += 1;
    if (device.logins === 1) this.reached += 1;
    this.spoiled.delete(device.id);
    this.liveness.connected(device.id, this.clock.nowUs);
  }

  printed(device: Device, level: string, text: string): void {
    // A stack names folders, and a trace is the same on every machine.
    this.logged?.(device.id, this.clock.nowUs, `${level}  ${text}`);
    this.trace("log", device.id, `${level} ${text.replace(/\n {4}at .*/g, "")}`);
  }

  threw(device: Device, code: string, text: string): void {
    // A bridge refuses whom it must, and that is no fault of its program.
    if (device.plan.kind === "bridge" && code !== PROGRAM) return;
    this.measured.programErrors.add({ code, example: `${device.id}: ${text}` });
  }

  met(client: Client): void {
    // Which packet carries which call: the core says it through a hook that its API has no use for.
    const { core } = client as unknown as {
      core: {
        call(peer: unknown, request: object, done: (outcome: unknown) => void): unknown;
      };
    };
    const { call } = core;
    core.call = (peer, request, done) => {
      const made = this.calling;
      if (made === null) return call.call(core, peer, request, done);
      const sent = (): void => {
        made.places.push(this.nonces.lastSealed);
        this.byPlace.set(this.nonces.lastSealed, made);
      };
      return call.call(core, peer, { ...request, sent }, done);
    };
  }

  presence(client: VirtualClient, { agentId, online }: Presence): void {
    getOrMake(this.presences, client.id, () => new Map()).set(agentId, online);
  }

  linked(client: VirtualClient, online: boolean): void {
    this.trace(online ? "online" : "offline", client.id, "");
    if (!online) {
      client.lostUs = this.clock.nowUs;
      this.presences.delete(client.id);
      // Who leaves by its own wish has no SDK any more.
      const isInUse = client.sdk !== null && client.usedUs > this.clock.nowUs - this.renewalUs;
      if (isInUse) this.liveness.lost(client.id, client.onlineSinceUs);
      return;
    }
    client.onlineSinceUs = this.clock.nowUs;
    this.spoiled.delete(client.id);
    if (!client.leaves) this.liveness.connected(client.id, this.clock.nowUs);
  }

  /** The latest `most` entries of the trace as lines, sealed packets with what is in them. */
  lastEvents(most: number): string[] {
    return this.linesOf(this.traceLog.tail().slice(-most));
  }

  private linesOf(entries: readonly Entry[]): string[] {
    const plaintexts = this.nonces.plaintexts();
    return entries.map(({ atUs, what, who, text }) => {
      const [, head = ""] = PAYLOAD.exec(text) ?? [];
      const plain = plaintexts.get(head);
      const shown = plain === undefined ? text : `${plain}  in ${text}`;
      return `${(atUs / 1e6).toFixed(6)}  ${what.padEnd(9)} ${who}  ${shown.slice(0, MAX_LINE)}`;
    });
  }

  /** Keeps the timeline of the first call that fails with this code. */
  private keepTimeline(code: string, method: string, call: TracedCall): void {
    const { timelines } = this;
    if (!this.traceLog.isKept || timelines.size >= MAX_TIMELINES || timelines.has(code)) return;
    const { client, device } = call;
    timelines.set(code, {
      call: `${code}: ${method} of ${client} at ${device}`,
      lines: this.linesOf(timelineOf(this.traceLog.tail(), call)).slice(-MAX_TIMELINE_LINES),
    });
  }

  violate(oracle: OracleName, detail: string): void {
    this.violation ??= { oracle, detail, atUs: this.clock.nowUs };
  }

  // ---- observations

  private relayLogged(message: string, error: unknown): void {
    const text = `${message} ${String((error as Error | undefined)?.message ?? "")}`;
    this.trace("relay log", "relay", text);
    this.relayOracle.kept(text, "the relay's log");
    if (/the hub failed/.test(message)) {
      this.violate("bounds", `${text} ${(error as Error | undefined)?.stack ?? ""}`);
    }
  }

  private check(): void {
    const { nowUs } = this.clock;
    if (this.isAlone) this.checkAlone();
    if (!this.liveness.isCalm(nowUs)) return;
    const stats = this.relay.stats();
    if (stats === null) return;
    // A client that renews its session token has two links for a while; each node has its own, and
    // those of the last client that left are forgotten a moment later.
    const links = Math.max(1, stats.connections.client) * this.relay.nodes.length;
    if (stats.bindings > links * MAX_BINDINGS_PER_CONNECTION) {
      this.violate("bounds", `${stats.bindings} bindings of ${links} links`);
    }
    for (const device of this.devices) {
      // A device that connects or disconnects at this moment is in transition.
      if (device.core === null || nowUs - device.plan.startUs < CHECK_US) continue;
      if (device.online && !this.relay.isOnline(device.id)) {
        this.violate("presence", `${device.id} is online, and the relay says that it is not`);
      }
    }
    // What came changed may have been such news.
    for (const [who, known] of this.net.corrupted > 0 ? [] : this.presences) {
      for (const [agentId, online] of known) {
        if (online !== this.relay.isOnline(agentId) && !this.isOnItsWay(agentId)) {
          const says = online ? "online" : "offline";
          this.violate("presence", `${who} has a wrong presence: ${agentId} is ${says}`);
        }
      }
    }
    if (this.net.corrupted === 0) this.checkTold();
  }

  /**
   * Whether clients that have been online for a while know each agent that has been so too. On a
   * narrow line the news may still be on its way.
   */
  private checkTold(): void {
    const longestUs = CHECK_US + this.devices.length * this.clients.length * SNAPSHOT_US;
    const sinceUs = this.clock.nowUs - longestUs;
    const isSettled = (one: Device | VirtualClient): boolean =>
      one.online && one.onlineSinceUs < sinceUs;
    const online = this.devices.filter((one) => isSettled(one) && this.relay.isOnline(one.id));
    for (const client of this.clients) {
      if (!client.presence || !isSettled(client) || client.conditions.bytesPerS > 0) continue;
      const known = this.presences.get(client.id);
      for (const { id, userId } of online) {
        if (userId !== client.userId || known?.get(id) === true) continue;
        this.violate("presence", `${client.id} was not told that ${id} is online`);
      }
    }
  }

  /** What is exact at any moment, because there is one node. */
  private checkAlone(): void {
    const { nowUs } = this.clock;
    const stats = this.relay.stats();
    if (stats === null) return;
    if (stats.connections.client === 0 && stats.bindings > 0) {
      this.violate("bounds", `${stats.bindings} bindings are left of clients that are gone`);
    }
    if (this.net.corrupted > 0) return;
    const agents = this.devices.map(
      ({ id, userId }) => [id, userId, this.relay.isOnline(id)] as const,
    );
    const isOpen = (wire: ObservedWire): boolean =>
      (wire as Wire).isOpenAtRelay && (wire as Wire).relayQueued() < this.outboxBytes / 2;
    this.toldOracle?.look(agents, isOpen, nowUs);
  }

  /** Checks for two links of one agent on running nodes. */
  private lookAtLinks(): void {
    const { nodes } = this.relay;
    const running = nodes.filter((node) => !node.isFrozen);
    const held = this.devices.map(({ id }) => {
      const holders = running.filter(({ hub }) => hub?.isOnline(id) ?? false);
      return [id, holders.map(({ name }) => name)] as const;
    });
    this.clusterOracle?.links(held, this.liveness.isOneLinkDue(this.clock.nowUs), this.clock.nowUs);
  }

  private isOnItsWay(agentId: string): boolean {
    const device = this.devices.find(({ id }) => id === agentId);
    return (
      device === undefined || !device.online || this.clock.nowUs - device.plan.startUs < CHECK_US
    );
  }

  private lastChecks(): void {
    const { nowUs } = this.clock;
    this.check();
    // Whose program has ended needs no time to come online.
    const missing = this.missing(
      (one) => nowUs - one.sinceUs > RECOVERY_US || (one instanceof Device && one.ended !== null),
    );
    this.liveness.mustBeOnline(nowUs, missing);
  }

  /** The names of those that are switched on and not online; `counts`: of which. */
  private missing(counts: (peer: Device | VirtualClient) => boolean = () => true): string[] {
    const sinceUs = this.clock.nowUs - BACK_US;
    const peers = [
      ...this.devices,
      // The relay ends the link of one whose session token has expired unused.
      ...this.clients.filter(({ leaves, lostUs }) => !leaves && lostUs < sinceUs),
    ];
    return peers
      .filter((one) => one.isOn && !one.online && !this.spoiled.has(one.id) && counts(one))
      .map((one) =>
        one instanceof Device && one.ended !== null ? `${one.id} (${one.ended})` : one.id,
      );
  }

  /** 100 s after a fault's end, if no other one has occurred since. */
  checkRecovered(): void {
    this.liveness.mustBeOnline(this.clock.nowUs, this.missing());
  }

  private sample(): void {
    const { measured, clock } = this;
    const stats = this.relay.stats();
    measured.gaugeAt("agents.online", this.online);
    measured.gaugeAt("agents.offline", this.devices.length - this.online);
    measured.gaugeAt("relay.queue_bytes", stats?.queueBytes ?? 0);
    measured.gaugeAt("relay.bindings", stats?.bindings ?? 0);
    const { client = 0, agent = 0, firmware = 0 } = stats?.connections ?? {};
    measured.gaugeAt("relay.connections", client + agent + firmware);
    measured.set("agents.reconnects", this.connects - this.reached);
    if (stats !== null) this.count(stats.counters);
    measured.series.push({
      at_s: clock.nowUs / 1e6,
      connected: this.online,
      ok: measured.tally.ok,
      failed: measured.tally.failed,
    });
  }

  /** Counters restart with each start of the relay; earlier counts are added. */
  private count(counters: {
    forwardedToAgents: number;
    forwardedToClients: number;
    dropped: ReadonlyMap<string, number>;
  }): void {
    const forwarded = counters.forwardedToAgents + counters.forwardedToClients;
    let dropped = 0;
    for (const n of counters.dropped.values()) dropped += n;
    if (forwarded < this.latest.forwarded) {
      this.before.forwarded += this.latest.forwarded;
      this.before.dropped += this.latest.dropped;
    }
    this.latest = { forwarded, dropped };
    this.measured.set("relay.forwarded", this.before.forwarded + forwarded);
    this.measured.set("relay.dropped", this.before.dropped + dropped);
  }

  private latest = { forwarded: 0, dropped: 0 };
  private readonly before = { forwarded: 0, dropped: 0 };
}

/** The beginning of a packet's payload, bare or in an envelope, where its quotes are escaped. */
const PAYLOAD = /\\?"p\\?":\\?"([A-Za-z0-9_-]{16})/;
const MAX_LINE = 200;
/** Different codes, and lines of each. */
const MAX_TIMELINES = 10;
const MAX_TIMELINE_LINES = 40;
/** A delayed packet is valid for at most 120 s after the last accepted one. */
const CALL_MEMORY_MS = 150_000;

const callText = (method: string, params: unknown): string =>
  `the call ${method} ${JSON.stringify(params) ?? ""}`.slice(0, 200).trimEnd();

const partyOf = ({ peer }: Wire): Party => {
  const { id, userId, isAgent = false } = peer as Peer & { userId: string; isAgent?: boolean };
  return { id, userId, isAgent: isAgent || peer instanceof Device };
};

const boot = (device: Device): void => device.boot();

/**
 * Resolves when all promises that can settle have settled: Node runs its microtasks to the end
 * before nextTick callbacks. A turn of the event loop would cost more than the simulated event.
 */
export const settled = (): Promise<void> => new Promise((resolve) => process.nextTick(resolve));
