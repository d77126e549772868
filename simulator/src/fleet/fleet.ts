/**
 * A virtual world that a test drives: relay, devices and one client. Its time moves only while the
 * test waits for something in the fleet. Everything else is as in a scenario: the same seed, faults
 * and oracles.
 */

import type { Agent, CallOptions } from "@blindrelay/client-sdk";
import type { LogAnswer } from "@blindrelay/protocol";
import { checkScenario } from "../scenario/load.ts";
import { makePlan, type PlannedLoad, planFault } from "../scenario/plan.ts";
import type { ClientGroupSpec, Fault, Scenario } from "../scenario/schema.ts";
import { durationMs, showMs } from "../scenario/units.ts";
import { sleep, type VirtualClient } from "../virtual/client.ts";
import type { Device } from "../virtual/device.ts";
import { playFault } from "../virtual/faults.ts";
import { loadPrograms } from "../virtual/programs.ts";
import { settled, World } from "../virtual/world.ts";

/** A scenario without the parts that the test plays itself. */
export type FleetOptions = Pick<Scenario, "devices"> &
  Partial<
    Pick<
      Scenario,
      "seed" | "network" | "relay" | "start" | "timezone" | "invariants" | "stubs" | "allow"
    >
  > & {
    /** How many. Default: 1. */
    clients?: number;
    /**
     * Clients of a scenario, which call while the test goes on; none of their calls may fail. Those
     * with a `rate` end after an hour, unless they say `until`.
     */
    loads?: ClientGroupSpec[];
  };

/** Clients of a fleet, which act at the same time. */
const MAX_CLIENTS = 16;

export interface FleetDevice {
  readonly id: string;
  readonly group: string;
  /** Logged in at the relay. */
  readonly online: boolean;
  /** Starts so far. */
  readonly boots: number;
  /**
   * The hardware of its latest start, as its stubs made it: `device.stubs.digitalRead("LED1")` is
   * what the program wrote to the pin.
   */
  // biome-ignore lint/suspicious/noExplicitAny: whatever the file of stubs gives
  readonly stubs: Readonly<Record<string, any>>;
}

export interface FleetClient {
  /** Connected to the relay. */
  readonly online: boolean;
  /** Calls a method, and lets time pass until it ends. Rejects with the SDK's CallError. */
  call<Result = unknown>(
    device: FleetDevice,
    method: string,
    params?: unknown,
    options?: Omit<CallOptions, "signal">,
  ): Promise<Result>;
  /** The latest lines of a device's log, and why it restarted. Rejects as `call` does. */
  logs(device: FleetDevice): Promise<LogAnswer>;
  /** The SDK's own handle, for events and streams. Wait for its promises with `clock.until`. */
  agent(device: FleetDevice): Agent;
}

export interface FleetClock {
  /** Milliseconds since the fleet was switched on. */
  now(): number;
  /** Lets time pass: milliseconds, or a duration such as `"30s"`. */
  advance(duration: number | string): Promise<void>;
  /**
   * Lets time pass until the promise settles. Rejects if it does not within `limit` of virtual time
   * (default: 10m).
   */
  until<T>(promise: Promise<T>, limit?: number | string): Promise<T>;
}

export interface FleetFaults {
  /**
   * Starts a fault of a scenario's vocabulary at once; it ends after its `for`. `targets`: these
   * devices instead of a group or a share. Throws a ScenarioError for an invalid one.
   */
  inject(fault: Omit<Fault, "at">, ...targets: readonly FleetDevice[]): void;
}

export interface FleetRelay {
  /** Whether it accepts connections. */
  readonly online: boolean;
  /** Connections that are logged in, by kind; zeros while it is down. */
  readonly connections: { readonly client: number; readonly agent: number };
}

/** How long the fleet may take to come online. */
const START_LIMIT = "5m";
const UNTIL_LIMIT = "10m";
/** Longer than any test; the world's own events need an end. */
const DURATION = "365d";
/** When an open loop ends: it is planned call by call. */
const OPEN_LOOP = "1h";
/** Real time, well below what a runner gives a test. */
const REMIND_MS = 1_000;
const LINES = 20;

/** The error, which arises in the world, with the lines of the test that asked. */
function withLinesOf(error: Error, asker: Error): Error {
  const lines = (asker.stack ?? "").split("\n").slice(2).join("\n");
  error.stack = `${error.name}: ${error.message}\n${lines}`;
  return error;
}

export class VirtualFleet {
  readonly seed: number;
  readonly devices: readonly FleetDevice[];
  readonly client: FleetClient;
  /** All of them; `client` is the first. */
  readonly clients: readonly FleetClient[];
  readonly clock: FleetClock;
  readonly faults: FleetFaults;
  readonly relay: FleetRelay;
  private readonly world: World;
  private readonly folder: string;
  private readonly scenario: Scenario;
  private readonly programs: ReturnType<typeof loadPrograms>;
  /** Pending waits of the test; each is called with the reason why it will never settle. */
  private readonly waiting = new Set<(reason: Error) => void>();
  private isPlaying = false;
  private isClosed = false;
  private injected = 0;

  /**
   * `folder`: what paths of programs are relative to. Throws a ScenarioError if the options or a
   * program are wrong.
   */
  constructor(options: FleetOptions, folder: string) {
    // Without a group that could be named, the mistakes in the options are reported below.
    const [first] = Array.isArray(options.devices) ? options.devices : [];
    const { clients: count = 1, loads = [], ...rest } = options;
    if (!(Number.isInteger(count) && count >= 1 && count <= MAX_CLIENTS)) {
      throw new RangeError(`clients: how many, from 1 to ${MAX_CLIENTS}`);
    }
    const own = Array.from({ length: count }, (_, n) => ({
      name: n === 0 ? "client" : `client-${n + 1}`,
      devices: first?.group ?? "",
      presence: true,
      from: "0s",
    }));
    const clients = [...own, ...loads.map(ending)];
    const asked = { name: "a test", duration: DURATION, ...rest, clients };
    this.scenario = checkScenario(asked, folder, "fleet").scenario;
    this.folder = folder;
    this.seed = this.scenario.seed ?? 1;
    this.programs = loadPrograms(this.scenario, folder);
    this.world = new World({
      scenario: this.scenario,
      plan: makePlan(this.scenario, this.seed),
      programs: this.programs,
      keptEntries: LINES,
    });
    this.devices = this.world.devices.map((device) => ({
      id: device.id,
      group: device.plan.group,
      get online() {
        return device.online;
      },
      get boots() {
        return device.boots;
      },
      get stubs() {
        return device.stubs;
      },
    }));
    this.clock = {
      now: () => this.world.clock.nowMs(),
      advance: (duration) => this.advance(milliseconds(duration)),
      until: (promise, limit = UNTIL_LIMIT) => this.until(promise, milliseconds(limit)),
    };
    this.clients = own.map((_, n) => this.makeClient(n));
    this.client = this.clients[0] as FleetClient;
    this.faults = { inject: (fault, ...targets) => this.inject(fault, targets) };
    this.relay = this.makeRelay();
  }

  /** Lets time pass until the client and every device are online. */
  async start(): Promise<void> {
    const limitMs = this.clock.now() + durationMs(START_LIMIT);
    for (;;) {
      const missing = this.devices.filter(({ online }) => !online);
      if (missing.length === 0 && this.clients.every(({ online }) => online)) return;
      if (this.clock.now() >= limitMs) {
        const who =
          missing.length === 0 ? "the client is" : `${missing.map(({ id }) => id).join(", ")} are`;
        throw this.explained(`${who} not online ${START_LIMIT} after the start`);
      }
      await this.advance(100);
    }
  }

  /** Ends the fleet of a test that has failed: nothing plays on, and nothing waits for it. */
  abandon(): void {
    this.isClosed = true;
    this.fail(new Error("the test is over"));
  }

  /**
   * Ends the fleet. Throws if an oracle has reported a violation, a call of a load failed, or a
   * program threw what it does not catch.
   */
  stop(): void {
    if (this.isClosed) return;
    this.abandon();
    this.world.finish();
    const { violation } = this.world;
    if (violation !== null) throw this.violated();
    const { failedLoad } = this.world;
    if (failedLoad !== null) throw this.explained(`a call of the fleet's loads: ${failedLoad}`);
    const { name, ok, detail } = this.world.measured.programErrors.judge(this.scenario.allow);
    if (!ok) throw this.explained(`the oracle "${name}": ${detail}`);
  }

  private makeClient(n: number): FleetClient {
    const { world } = this;
    const client = world.clients[n] as VirtualClient;
    const load = world.plan.loads[n] as PlannedLoad;
    const call: FleetClient["call"] = (device, method, params, options = {}) => {
      const { timeoutMs = load.timeoutMs, idempotent = false } = options;
      const asker = new Error();
      const own = { ...load, timeoutMs, spec: { ...load.spec, idempotent } };
      const outcome = new Promise<never>((resolve, reject) => {
        const question = { method, params, right: () => true };
        const to = this.deviceOf(device);
        const asked = { load: own, client, device: to, question, isFirst: false };
        world.call(asked, (result, error) => {
          if (error === null) resolve(result as never);
          else reject(withLinesOf(error, asker));
        });
      });
      return this.until(outcome, timeoutMs + durationMs(UNTIL_LIMIT));
    };
    const agent: FleetClient["agent"] = (device) => {
      if (client.sdk === null) throw new Error("the client is not connected");
      const { id, agentToken, agentOptions } = this.deviceOf(device);
      return this.reminding(client.sdk.agent(id, agentToken, agentOptions));
    };
    return {
      get online() {
        return client.online;
      },
      call,
      // Not a call of the program, whose runs the oracles count.
      logs: (device) =>
        this.until(
          agent(device).call<LogAnswer>("system.log", {}, { idempotent: true }),
          durationMs(UNTIL_LIMIT),
        ),
      agent,
    };
  }

  /**
   * A call that a test awaits without the clock waits for ever: says so, before the test's runner
   * ends it without a word.
   */
  private reminding(agent: Agent): Agent {
    if (Object.hasOwn(agent, "call")) return agent;
    const { clock } = this.world;
    const call: Agent["call"] = (method, ...more) => {
      const outcome = Object.getPrototypeOf(agent).call.call(agent, method, ...more);
      const at = clock.nowMs();
      const timer = setTimeout(() => {
        if (this.isClosed || this.waiting.size > 0 || clock.nowMs() > at) return;
        const how = `await clock.until(client.agent(device).call("${method}"))`;
        console.warn(`fleetTest: time stands still while the test awaits this call; write ${how}`);
      }, REMIND_MS);
      outcome.catch(() => undefined).finally(() => clearTimeout(timer));
      return outcome;
    };
    return Object.assign(agent, { call });
  }

  private makeRelay(): FleetRelay {
    const { relay } = this.world;
    return {
      get online() {
        return relay.isUp;
      },
      get connections() {
        const { client = 0, agent = 0 } = relay.stats()?.connections ?? {};
        return { client, agent };
      },
    };
  }

  private deviceOf({ id }: FleetDevice): Device {
    const device = this.world.devices.find((one) => one.id === id);
    if (device === undefined) throw new Error(`${id} is not a device of this fleet`);
    return device;
  }

  private inject(fault: Omit<Fault, "at">, targets: readonly FleetDevice[]): void {
    const { world } = this;
    const asked = { ...this.scenario, faults: [{ at: "0s", ...fault }] };
    const { scenario } = checkScenario(asked, this.folder, "fault");
    for (const [path, program] of loadPrograms(scenario, this.folder)) {
      if (!this.programs.has(path)) this.programs.set(path, program);
    }
    this.injected += 1;
    const [spec] = scenario.faults as [Fault];
    const lots = `${this.seed}/${this.injected}`;
    const planned = planFault(spec, lots, world.plan.devices, world.plan.loads);
    const chosen = targets.map((device) => this.deviceOf(device).number);
    const { nowUs } = world.clock;
    playFault(world, {
      ...planned,
      atUs: nowUs,
      endUs: nowUs + planned.endUs,
      devices: targets.length === 0 ? planned.devices : chosen,
    });
  }

  private advance(ms: number): Promise<void> {
    const { world } = this;
    return this.wait((resolve) => void sleep(world, ms).then(resolve));
  }

  private until<T>(promise: Promise<T>, limitMs: number): Promise<T> {
    const { world } = this;
    return this.wait((resolve, reject) => {
      const limit = world.clock.after(limitMs, () => {
        reject(this.explained(`nothing settled within ${showMs(limitMs)} of virtual time`));
        world.stir();
      });
      const end = (): void => world.clock.cancel(limit);
      promise.finally(end).then(resolve, reject);
    });
  }

  /** Lets time pass until what `begin` started has settled. */
  private wait<T>(
    begin: (resolve: (value: T) => void, reject: (reason: Error) => void) => void,
  ): Promise<T> {
    if (this.isClosed) return Promise.reject(new Error("the test is over"));
    return new Promise((resolve, reject) => {
      const refuse = (reason: Error): void => {
        this.waiting.delete(refuse);
        reject(reason);
      };
      this.waiting.add(refuse);
      begin((value) => {
        this.waiting.delete(refuse);
        resolve(value);
      }, refuse);
      this.play();
    });
  }

  private async play(): Promise<void> {
    if (this.isPlaying) return;
    this.isPlaying = true;
    const { world } = this;
    try {
      // What the test started before it waited.
      await settled();
      while (this.waiting.size > 0) {
        await world.play(
          () => this.waiting.size === 0,
          () => !this.isClosed,
        );
        if (world.violation !== null) this.fail(this.violated());
      }
    } catch (error) {
      this.fail(error as Error);
    } finally {
      this.isPlaying = false;
    }
  }

  private fail(reason: Error): void {
    for (const refuse of [...this.waiting]) refuse(reason);
  }

  private violated(): Error {
    const { violation } = this.world;
    return this.explained(`the oracle "${violation?.oracle}": ${violation?.detail}`);
  }

  /** The error with what is needed to reproduce it. */
  private explained(what: string): Error {
    const { world } = this;
    const tail = world.lastEvents(LINES).map((line) => `  ${line}`);
    const at = `${showMs(world.clock.nowMs())} after the start, seed ${this.seed}`;
    return new Error([`${what} (${at}). The latest events:`, ...tail].join("\n"));
  }
}

const ending = (load: ClientGroupSpec): ClientGroupSpec =>
  load.rate === undefined ? load : { until: OPEN_LOOP, ...load };

const milliseconds = (duration: number | string): number => {
  const ms = typeof duration === "string" ? durationMs(duration) : duration;
  if (!(ms >= 0)) throw new RangeError(`not a duration: ${duration}; give ms, or such as "30s"`);
  return ms;
};
