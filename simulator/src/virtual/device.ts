/**
 * A simulated device: the real agent core with its device program, on storage that outlives a
 * reboot, with a clock that may be wrong and a link into the virtual network.
 */
import { hash } from "node:crypto";
import {
  type Agent,
  AgentCore,
  type AgentPorts,
  type BootCountResult,
  type DeviceLog,
  endLog,
  giveStorage,
  keepingLog,
  LARGE_LOG_BYTES,
  openLog,
  provisionBootCount,
  raiseBootCount,
  SMALL_AGENT_LIMITS,
  serveLog,
} from "@blindrelay/agent-sdk";
import { CuttableStorage, MEDIA, MemoryStorage, PowerCut } from "@blindrelay/agent-sdk/memory";
import type { LinkEvents, LinkPort, StoragePort, TimerPort } from "@blindrelay/agent-sdk/ports";
import { Rekeying, type StartSecrets, startSecrets } from "@blindrelay/agent-sdk/rekey";
import type { AgentOptions } from "@blindrelay/client-sdk";
import { makeToken } from "@blindrelay/protocol";
import { textOfThrown } from "@blindrelay/protocol/command-line";
import { isForward, type Suite, toBase64url, type X25519 } from "@blindrelay/protocol/crypto";
import {
  AgentSessions,
  type AgentSessionsOptions,
  DEFAULT_AGENT_LIMITS,
} from "@blindrelay/protocol/session";
import { forwardSessions, seedOf } from "../base/forward-sessions.ts";
import { Stream } from "../base/random-streams.ts";
import type { ForwardOracle } from "../oracle/forward.ts";
import type { OracleName } from "../oracle/names.ts";
import { SecretsOracle } from "../oracle/secrets.ts";
import { StorageOracle } from "../oracle/storage.ts";
import { thrownIn } from "../report/program-errors.ts";
import type { PlannedDevice } from "../scenario/plan.ts";
import { PROGRAM } from "../scenario/schema.ts";
import type { Clock, Happening, Prepared } from "./clock.ts";
import type { Running } from "./globals.ts";
import { Conditions, type Net, type Peer, type Wire } from "./net.ts";
import { describeError, type Globals, type LoadedProgram } from "./program.ts";
import { ProgramSlots } from "./program-slots.ts";
import { type Stubs, stubsOf } from "./stubs.ts";

const SDK = "simulated";
/** How long a device is off whose write was torn. */
const TORN_US = 2_000_000;
/** A change of secrets takes several writes, and one of the first three is the torn one. */
const REKEY_WRITES = 3;
/** Earlier secrets that a board remembers. */
const BOARD_MAX_FROM = 8;
/** No timer fires sooner, as on Node, so that time goes on while a program waits in turns. */
const SHORTEST_MS = 1;
/** The fixed places of the cores' timers within a microsecond: after those of pings. */
const CORE_PLACES = 2 ** 32;

type Boot = Extract<BootCountResult, { ok: true }>;

/** What a device needs from its world. */
export interface DeviceWorld {
  readonly seed: number;
  readonly clock: Clock;
  readonly net: Net;
  readonly suite: Suite;
  readonly x25519: X25519;
  readonly forwardOracle: ForwardOracle;
  readonly globals: Globals;
  /** The file of the scenario's stubs. */
  readonly stubs: LoadedProgram | undefined;
  /** Code of this device runs from now on. */
  enter(device: Device): void;
  /** Promises may have been started. */
  stir(): void;
  trace(what: string, who: string, text: string): void;
  /** A core was created, and none of its code has run. */
  born(device: Device, core: AgentCore): void;
  /** Sessions of a secret were created. */
  sessionsMade(device: Device, sessions: AgentSessions, agentToken: string): void;
  /** A program by what is pushed of it; null: nobody has sent it. */
  programOf(text: string): LoadedProgram | null;
  violate(oracle: OracleName, detail: string): void;
  /** It went online or offline. */
  changed(device: Device, online: boolean): void;
  printed(device: Device, level: string, text: string): void;
  /** Its program threw: `code` as reports name it. */
  threw(device: Device, code: string, text: string): void;
}

export class Device implements Peer, Running {
  readonly plan: PlannedDevice;
  readonly number: number;
  readonly conditions: Conditions;
  readonly netDraws: Stream;
  readonly pingSalt: number;
  relayToken: string;
  /** The newest token; differs from the device's own while a rotation is in progress. */
  issuedToken: string;
  /** The one that its clients use. */
  agentToken: string;
  /** The one that it was provisioned with. */
  configured: string;
  /** Owners who are changing its secret: its clients may have another one than it has. */
  changing = 0;
  /** When one of them was done. */
  changedUs = Number.NEGATIVE_INFINITY;
  secrets: SecretsOracle;
  /** Has to prove a new secret; null: everybody who has the present one may replace it. */
  readonly pushKey: string | null;
  /** What its clients know of it, beside its secret. */
  readonly agentOptions: AgentOptions;
  /** Of its latest start. */
  program: LoadedProgram;
  /** Null while it is off. */
  core: AgentCore | null = null;
  private log: DeviceLog | null = null;
  online = false;
  /** Its hardware, as its latest start got it. */
  stubs: Stubs = {};
  /** Why its program ended it; null while it goes on, or has no power. */
  ended: string | null = null;
  /** What the running program exposes; null until it has begun. */
  exposed: Map<string, () => unknown> | null = null;
  boots = 0;
  logins = 0;
  /** Since when it is online. */
  onlineSinceUs = 0;
  skewMs: number;
  /** Faults that cut the power in the middle of the program's next write. */
  tears = 0;
  /** The same while it raises its boot count. */
  bootTears = 0;
  /** Faults that leave no room on the medium. */
  fulls = 0;
  private readonly world: DeviceWorld;
  private readonly drift: number;
  /** The private half of its pinned key; null: it has none. */
  private readonly deviceKey: Uint8Array | null;
  private readonly x25519: X25519;
  private storage = new MemoryStorage();
  /** What it had when it was new. */
  private readonly flashed: LoadedProgram;
  private slots: ProgramSlots;
  private provisioned = false;
  /** Of its latest start with this secret. */
  private lastCount = 0;
  private stored = this.newStorageOracle();
  /** Made for each program that it runs; null: that one has no hardware. */
  private makeStubs: { program: LoadedProgram; make: ReturnType<typeof stubsOf> } | null = null;
  private draws: Stream | null = null;
  private stubDraws: Stream | null = null;
  private readonly timers = new Set<Happening>();
  private wire: Wire | null = null;
  /** Faults that keep it without power. */
  private unplugged = 0;
  /** The core is setting its own timer, rather than one of the program's. */
  private arming = false;
  /** The core's timer for a silent link, while that link rests. */
  private parked: Prepared | null = null;

  constructor(
    world: DeviceWorld,
    number: number,
    plan: PlannedDevice,
    relayToken: string,
    program: LoadedProgram,
  ) {
    this.world = world;
    this.number = number;
    this.plan = plan;
    this.relayToken = relayToken;
    this.issuedToken = relayToken;
    this.program = program;
    this.flashed = program;
    this.slots = this.newSlots();
    this.skewMs = plan.skewMs;
    this.drift = 1 + plan.driftPpm / 1e6;
    this.conditions = new Conditions(plan.network);
    this.netDraws = new Stream(`${world.seed}/${plan.id}/net`);
    this.pingSalt = new Stream(`${world.seed}/${plan.id}/pings`).next();
    this.agentToken = this.makeSecret(0);
    this.configured = this.agentToken;
    this.secrets = this.newSecretsOracle();
    const pins = isForward(plan.version) && (this.secretBytes("pins")[0] as number) < 128;
    this.deviceKey = pins ? this.secretBytes("key") : null;
    const isGuarded = (this.secretBytes("guarded")[0] as number) < 128;
    this.pushKey = isGuarded ? makeToken("push", this.secretBytes("push key")) : null;
    this.x25519 = world.forwardOracle.exchanging(world.x25519, this.deviceKey);
    this.agentOptions = { version: plan.version, ...publicHalf(world.x25519, this.deviceKey) };
  }

  get id(): string {
    return this.plan.id;
  }

  get group(): string {
    return this.plan.group;
  }

  /** The account that owns it. */
  get userId(): string {
    return this.plan.account;
  }

  get address(): string {
    return this.plan.address;
  }

  private makeSecret(n: number): string {
    return makeToken("e2e", this.secretBytes(`secret/${n}`));
  }

  private secretBytes(name: string): Uint8Array {
    return new Stream(`${this.world.seed}/${this.plan.id}/${name}`).bytes(32);
  }

  // ---- power

  /** Switches it on. Harmless while it is on, or has no power. */
  boot(): void {
    if (this.core !== null || this.unplugged > 0) return;
    const { world, plan } = this;
    this.boots += 1;
    this.ended = null;
    world.enter(this);
    world.trace("boot", plan.id, String(this.boots));
    const hasPower = (): boolean => this.unplugged === 0;
    const begun = this.beginStart();
    if (begun === null) return;
    const { raised, secrets } = begun;
    const { count: bootCount, seed } = raised;
    try {
      this.program = this.slots.begin(this.storageWhile(hasPower));
    } catch (error) {
      if (!(error instanceof PowerCut)) throw error;
    }
    if (!hasPower()) return;
    const ports = this.ports();
    const kept = openLog({
      bytes: LARGE_LOG_BYTES,
      bootCount,
      timer: ports.timer,
      storage: this.storage,
      secrets: [this.configured, secrets.token, secrets.trial ?? "", this.relayToken],
    });
    this.log = kept;
    const ofSessions = {
      suite: world.suite,
      agentId: plan.id,
      version: plan.version,
      deviceRandom: new Stream(`${world.seed}/${plan.id}/boot/${this.boots}`).bytes(16),
      serialNumber: plan.id,
      limits: plan.limits === undefined ? DEFAULT_AGENT_LIMITS : SMALL_AGENT_LIMITS,
    };
    const core = new AgentCore({
      ...ofSessions,
      url: "ws://relay.invalid/wss",
      relayToken: this.relayToken,
      agentToken: secrets.token,
      name: plan.id,
      runtime: "simulator",
      sdkVersion: SDK,
      bootCount,
      forward: forwardSessions(seed, this.x25519, this.deviceKey),
      ports: { ...ports, log: keepingLog(kept, ports.log, () => "") },
    });
    serveLog(kept, core);
    this.core = core;
    const { arm } = core;
    core.arm = () => {
      this.arming = true;
      arm.call(core);
      this.arming = false;
    };
    core.link.onState(({ state }) => {
      if (this.core !== core || (state === "online") === this.online) return;
      this.online = !this.online;
      if (this.online) this.logins += 1;
      world.changed(this, this.online);
    });
    const storage = this.storageWhile(() => this.core === core);
    giveStorage(core.agent, storage);
    this.stored.watch(core.agent.storage);
    this.slots.serve(core, storage);
    world.born(this, core);
    world.sessionsMade(this, core.sessions as AgentSessions, secrets.token);
    this.takeSecrets(core, secrets, raised, ofSessions);
    const exposed = new Map<string, () => unknown>();
    core.agent.expose = (name, read) => void exposed.set(name, read);
    let started: unknown;
    try {
      this.stubs = this.connectHardware();
      const program = this.program.instantiate(world.globals, this.stubs);
      started = (program as (agent: Agent) => unknown)(core.agent);
    } catch (error) {
      this.crashed(core, error);
      return;
    }
    // It lost its power while it stored something.
    if (this.core !== core) return;
    if (typeof (started as Promise<void> | undefined)?.then !== "function") {
      this.exposed = exposed;
      core.start();
      return;
    }
    world.stir();
    (started as Promise<void>).then(
      () => {
        if (this.core !== core) return;
        this.exposed = exposed;
        core.start();
      },
      (error: unknown) => this.crashed(core, error),
    );
  }

  /** Accepts new secrets from now on. */
  private takeSecrets(
    core: AgentCore,
    secrets: StartSecrets,
    raised: Boot,
    ofSessions: Omit<AgentSessionsOptions, "agentToken" | "bootCount">,
  ): void {
    const { world, plan } = this;
    const isBoard = plan.limits !== undefined;
    const rekeying = new Rekeying({
      core,
      agentId: plan.id,
      suite: world.suite,
      storage: this.storageWhile(() => this.core === core, REKEY_WRITES),
      pushKey: this.pushKey,
      secrets,
      ...(isBoard ? { maxFrom: BOARD_MAX_FROM } : {}),
      now: () => this.lastingMs(),
      makeSessions: (agentToken, boot) => {
        if (boot !== raised) {
          this.counted(boot);
          this.secrets.tries(agentToken, this.monotonicMs());
        }
        const all = { ...ofSessions, agentToken, bootCount: boot.count };
        const forward = forwardSessions(boot.seed, this.x25519, this.deviceKey);
        const sessions = forward?.(all) ?? new AgentSessions(all);
        world.sessionsMade(this, sessions, agentToken);
        return sessions;
      },
      replaced: () => this.secrets.replaced(this.texts()),
      sha256: (text) => hash("sha256", text),
    });
    if (secrets.trial !== null) rekeying.begin(secrets.trial, raised, secrets.trialMs);
    raised.seed?.fill(0);
  }

  /** It has power, even where its program has failed and ended it. */
  get isOn(): boolean {
    return this.boots > 0 && this.unplugged === 0;
  }

  get sinceUs(): number {
    return this.plan.startUs;
  }

  /** Cuts the power: peers get no notice, and the program's memory is lost. */
  powerOff(): void {
    const { core } = this;
    if (core === null) return;
    this.world.trace("power off", this.plan.id, "");
    for (const wire of this.conditions.wires) wire.vanish();
    this.core = null;
    this.exposed = null;
    core.stop();
    this.parked = null;
    this.wire = null;
    for (const timer of this.timers) this.world.clock.cancel(timer);
    this.timers.clear();
    if (this.online) {
      this.online = false;
      this.world.changed(this, false);
    }
  }

  /** Cuts the power until `plugIn` has been called as often. */
  unplug(): void {
    this.unplugged += 1;
    this.powerOff();
  }

  plugIn(): void {
    this.unplugged -= 1;
    this.boot();
  }

  /**
   * Empties its storage, which requires a new secret: a boot count must never restart under the old
   * one.
   */
  loseStorage(): void {
    this.storage = new MemoryStorage();
    this.stored = this.newStorageOracle();
    this.slots = this.newSlots();
    this.provisioned = false;
    this.lastCount = 0;
    this.agentToken = this.makeSecret(this.boots);
    this.configured = this.agentToken;
    this.secrets = this.newSecretsOracle();
  }

  /** Sessions of this secret have opened a packet. */
  answers(agentToken: string): void {
    this.secrets.answers(agentToken, this.monotonicMs());
  }

  /** It has answered under this secret, which replaces `before`: its owner tells all clients. */
  proven(agentToken: string, before: string): void {
    if (this.agentToken !== before) return;
    this.agentToken = agentToken;
    this.secrets.release(before);
  }

  /** The program threw an uncaught error, which ends a device. */
  private crashed(core: AgentCore, error: unknown): void {
    // Its power went, and what it says about that is lost.
    if (error instanceof PowerCut || this.core !== core) return;
    const why = `the program failed: ${describeError(error, this.program)}`;
    if (this.endsTrial(error, why)) return;
    this.print("error", why);
    this.world.threw(this, PROGRAM, why);
    if (this.log !== null) endLog(this.log, "throw", why);
    this.powerOff();
    this.ended = why;
  }

  /** An uncaught error fails a program that is on trial, and nothing else. */
  private endsTrial(error: unknown, why: string): boolean {
    if (!this.slots.failed(this.storage, textOfThrown(error))) return false;
    this.print("error", `on trial, ${why}`);
    return true;
  }

  private newStorageOracle(): StorageOracle {
    const violate = (what: string): void => this.world.violate("storage", `${this.id} ${what}`);
    return new StorageOracle(violate, (error) => error instanceof PowerCut);
  }

  private newSlots(): ProgramSlots {
    const { world } = this;
    const device = {
      suite: world.suite,
      programOf: (text: string) => world.programOf(text),
      violate: (detail: string) => world.violate("programs", `${this.id} ${detail}`),
      after: (ms: number, fn: () => void) => {
        const timer = this.setTimer(ms, fn, false);
        return () => this.clearTimer(timer);
      },
      restart: (reason: string) => {
        if (this.log !== null) endLog(this.log, "push", reason);
        this.powerOff();
        this.boot();
      },
    };
    return new ProgramSlots(device, this.flashed);
  }

  private connectHardware(): Stubs {
    const { world, program, plan } = this;
    if (this.makeStubs?.program !== program) {
      this.makeStubs = { program, make: stubsOf(program, world.stubs, world.globals) };
    }
    const { make } = this.makeStubs;
    if (make === null) return {};
    this.stubDraws ??= new Stream(`${world.seed}/${plan.id}/stubs`);
    const draws = this.stubDraws;
    return make({
      id: plan.id,
      group: plan.group,
      boots: this.boots,
      now: () => this.monotonicMs(),
      random: () => draws.fraction(),
      log: (text) => this.print("info", text),
    });
  }

  private newSecretsOracle(): SecretsOracle {
    const violate = (what: string): void => this.world.violate("secrets", `${this.id} ${what}`);
    return new SecretsOracle(violate, this.agentToken);
  }

  /** All that is on its medium. */
  private texts(): string[] {
    return this.storage.names().map((name) => this.storage.read(name) ?? "");
  }

  /** What it stores on, until the power goes. `odds`: of so many writes about one is torn. */
  private storageWhile(isOn: () => boolean, odds = 1): StoragePort {
    const mustBeOn = (): void => {
      if (!isOn()) throw new PowerCut();
    };
    return {
      read: (name) => {
        mustBeOn();
        return this.storage.read(name);
      },
      write: (name, text) => {
        mustBeOn();
        // Of several writes, some may still fit.
        if (this.fulls > 0 && (odds === 1 || this.tornOf(2, `full/${name}`) === 0)) {
          throw new Error("no space on the medium");
        }
        if (this.tears > 0 && this.tornOf(odds, name) === 0) {
          this.tears -= 1;
          this.tearWrite(name, text);
        } else this.storage.write(name, text);
      },
    };
  }

  /** The power goes at a step of this write, and comes back a little later. */
  private tearWrite(name: string, text: string): never {
    const { world, storage } = this;
    const { clock } = world;
    const draws = new Stream(`${world.seed}/${this.plan.id}/torn/${clock.nowUs}/${name}`);
    const before = storage.read(name);
    const medium = new CuttableStorage(
      MEDIA[draws.below(MEDIA.length)] as (typeof MEDIA)[number],
      new Map(before === null ? [] : [[name, before]]),
    );
    medium.cutAfter(1 + draws.below(text.length + 2));
    try {
      medium.write(name, text);
    } catch {
      const left = medium.read(name);
      if (left === null) storage.remove(name);
      else storage.write(name, left);
    }
    world.trace("torn write", this.plan.id, name);
    this.unplug();
    clock.at(clock.nowUs + TORN_US, (device: Device) => device.plugIn(), this, null);
    throw new PowerCut();
  }

  /** Its secrets, and its count under the present one. Null: its power went meanwhile. */
  private beginStart(): { raised: Boot; secrets: StartSecrets } | null {
    const { world, plan, storage } = this;
    const { suite } = world;
    if (!this.provisioned) {
      const seed = seedOf(plan.version, () => this.secretBytes(`seed/${this.boots}`));
      const made = provisionBootCount(storage, suite, this.configured, seed);
      if (!made.ok) throw new Error(made.advice);
      this.provisioned = true;
    }
    // A start may write both slots and both records of a secret, and each may be the one.
    const isRekeyed = storage.read("secret.0") !== null || storage.read("secret.1") !== null;
    let spared = this.bootTears > 0 ? this.tornOf(isRekeyed ? 4 : 2) : Number.POSITIVE_INFINITY;
    const slots: StoragePort = {
      read: (name) => storage.read(name),
      write: (name, text) => {
        if (spared-- > 0) return storage.write(name, text);
        this.bootTears -= 1;
        return this.tearWrite(name, text);
      },
    };
    let secrets: StartSecrets | null = null;
    try {
      secrets = startSecrets(slots, suite, this.configured, this.lastingMs());
    } catch (error) {
      if (!(error instanceof PowerCut)) throw error;
      return null;
    }
    if (secrets === null) {
      world.violate("secrets", `${this.id} does not know the secret of its configuration`);
      return null;
    }
    const raised = raiseBootCount(slots, suite, secrets.token, secrets.earlier);
    if (this.unplugged > 0) return null;
    if (!raised.ok) {
      const oracle = isRekeyed ? "secrets" : "nonce";
      world.violate(oracle, `${this.id} does not start any more: ${raised.advice}`);
      return null;
    }
    this.counted(raised);
    this.secrets.started(secrets.token, secrets.trial, this.monotonicMs(), this.texts());
    return { raised, secrets };
  }

  /** It has raised its boot count. */
  private counted({ count, seed }: Boot): void {
    if (count <= this.lastCount) {
      this.world.violate("nonce", `${this.id} has the boot count ${count} again`);
    }
    this.lastCount = count;
    if (seed !== undefined) this.world.forwardOracle.started(this.id, seed, this.texts());
  }

  /** Which of so many writes is torn; `name`: 0 if that of this file is. */
  private tornOf(writes: number, name = ""): number {
    const { seed, clock } = this.world;
    return new Stream(`${seed}/${this.id}/torn/${clock.nowUs}/which${name}`).below(writes);
  }

  /** A clock that goes on without power, as one on Node; 0: boards have none. */
  private lastingMs(): number {
    return this.plan.limits === undefined ? this.wallMs() : 0;
  }

  // ---- passed to its code

  private ports(): AgentPorts {
    const { world } = this;
    const link: LinkPort = {
      connect: (_url, events) => {
        this.wire = world.net.connect(this, entering(this, events));
        return this.wire;
      },
    };
    const timer: TimerPort = {
      now: () => this.monotonicMs(),
      set: (ms, fn) =>
        this.arming
          ? this.setCoreTimer(ms, fn)
          : world.clock.at(this.dueUs(ms), runTimer, this, fn),
      clear: (handle) => world.clock.cancel(handle as Happening),
    };
    return {
      link,
      timer,
      random: (length) => this.randomBytes(length),
      suite: world.suite,
      log: (level, message, fields) => {
        // Code whose power was cut in the middle may still be unwinding.
        if (level === "debug" || level === "info" || this.core === null) return;
        const text = fields === undefined ? message : `${message} ${JSON.stringify(fields)}`;
        this.print(level, text);
        const code = thrownIn(message);
        if (code !== null) world.threw(this, code, text);
      },
    };
  }

  /**
   * When the core wakes up without work depends on which pings are omitted, so its timer is due as
   * soon as the device's clock shows the requested time, before anything else that is due then.
   * While the link rests, a timer that only waits for silence is not even scheduled.
   */
  private setCoreTimer(ms: number, fn: () => void): Happening {
    const { clock } = this.world;
    const due = Math.ceil(this.monotonicMs() + ms);
    let dueUs = Math.ceil((due / this.drift) * 1000);
    while (this.monotonicMs(dueUs) < due) dueUs += 1;
    const timer = clock.prepare(dueUs, runCoreTimer, this, fn, CORE_PLACES + this.number);
    const { core, wire } = this;
    const waitsForSilence =
      core?.link.state === "online" && core.sessions.nextExpiry() === null && wire?.rests();
    if (waitsForSilence) this.parked = timer;
    else clock.put(timer);
    return timer;
  }

  /** The link no longer rests: see Peer. */
  woken(): void {
    const { parked } = this;
    this.parked = null;
    if (parked !== null) this.world.clock.put(parked);
  }

  /** Its core is about to check how long the link has been silent. */
  hear(): void {
    this.wire?.hear();
  }

  private dueUs(ms: number): number {
    return this.world.clock.dueUs(Math.max(SHORTEST_MS, ms) / this.drift);
  }

  enter(): void {
    this.world.enter(this);
    if (this.program.isAsync) this.world.stir();
  }

  wallMs(): number {
    return this.world.clock.epochMs + this.monotonicMs() + this.skewMs;
  }

  monotonicMs(atUs = this.world.clock.nowUs): number {
    return Math.floor((atUs / 1000) * this.drift);
  }

  setTimer(ms: number, fn: () => void, again: boolean): unknown {
    const handle: { current: Happening | null } = { current: null };
    const arm = (): void => {
      const happening = this.world.clock.at(this.dueUs(ms), runTimer, this, () => {
        this.timers.delete(happening);
        if (again) arm();
        try {
          fn();
        } catch (error) {
          if (error instanceof PowerCut) return;
          const why = `a timer of the program failed: ${describeError(error, this.program)}`;
          if (this.endsTrial(error, why)) return;
          this.world.threw(this, PROGRAM, why);
          if (this.core === null) this.print("error", why);
          else this.core.agent.log("error", why);
        }
      });
      this.timers.add(happening);
      handle.current = happening;
    };
    arm();
    return handle;
  }

  clearTimer(handle: unknown): void {
    const current = (handle as { current?: Happening | null } | null | undefined)?.current;
    if (current == null) return;
    this.timers.delete(current);
    this.world.clock.cancel(current);
  }

  randomFraction(): number {
    return this.programDraws().fraction();
  }

  randomBytes(length: number): Uint8Array {
    return this.programDraws().bytes(length);
  }

  print(level: string, text: string): void {
    this.world.printed(this, level, text);
  }

  private programDraws(): Stream {
    this.draws ??= new Stream(`${this.world.seed}/${this.plan.id}/random`);
    return this.draws;
  }
}

/** Of a pinned key, as its clients get it. */
const publicHalf = (x25519: X25519, deviceKey: Uint8Array | null): { deviceKey?: string } =>
  deviceKey === null ? {} : { deviceKey: toBase64url(x25519.pair(deviceKey).publicKey()) };

/** Link events that first report which device's code runs. */
const entering = (device: Device, events: LinkEvents): LinkEvents => ({
  opened: () => {
    device.enter();
    events.opened();
  },
  received: (text) => {
    device.enter();
    events.received(text);
  },
  closed: (code, reason) => {
    device.enter();
    events.closed(code, reason);
  },
});

const runTimer = (device: Device, fn: () => void): void => {
  device.enter();
  fn();
};

const runCoreTimer = (device: Device, fn: () => void): void => {
  device.enter();
  device.hear();
  fn();
};
