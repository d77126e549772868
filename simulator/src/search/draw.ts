/**
 * Random scenarios for searches, drawn as a swarm: which faults and drivers exist at all differs
 * from one to the next. Small fleets, minutes long, faults in bursts, and mostly a quiet end.
 */
import { SMALL_AGENT_LIMITS } from "@blindrelay/agent-sdk";
import { CALL_ERRORS } from "@blindrelay/client-sdk";
import { Stream } from "../base/random-streams.ts";
import {
  type Allowed,
  ATTACKS,
  type ClientGroupSpec,
  type DeviceGroupSpec,
  DRIVER_KINDS,
  type DriverSpec,
  FAULTS,
  type Fault,
  type FaultKind,
  KIND_NAMES,
  NEEDED_KIND,
  type Scenario,
} from "../scenario/schema.ts";
import { durationMs } from "../scenario/units.ts";

/** What there is or is not in a case: a kind of fault; of a hostile relay, a kind of attack. */
type Sort = Pick<Fault, "kind" | "attack">;

const SORTS = (Object.keys(FAULTS) as FaultKind[]).flatMap((kind): Sort[] => {
  return kind === "relay.hostile" ? ATTACKS.map((attack) => ({ kind, attack })) : [{ kind }];
});
const RAW = DRIVER_KINDS.filter((kind) => !Object.hasOwn(NEEDED_KIND, kind));
/** Without faults, before the end: longer than anything takes to recover. */
const QUIET_S = 140;
const MAX_FAULTS = 12;
/** A secret on trial is forgotten after ten minutes, and its owner knows that after fifteen. */
const TRIAL_S = 1_200;
/** What comes between the steps of its change. */
const BETWEEN: readonly FaultKind[] = [
  "storage.torn",
  "storage.torn",
  "storage.full",
  "device.reboot",
  "net.cut",
  "relay.restart",
  "relay.crash",
  "device.update",
];
/** Of one case: how likely each sort of fault is there at all. Few sorts come often. */
const SHARES = [8, 25, 40] as const;
/** Between two calls: at one end some are always in flight, at the other each needs a session. */
const SHORTEST_MS = 200;
const LONGEST_MS = 200_000;
/** When clients have begun to call. */
const LATEST_S = 30;
/** The same where a call itself may take long: on a slow network, or in a closed loop. */
const SLOWEST_MS = 3_000;
/** On a slow network, with the way into a link and a session, which a first call takes as well. */
const SLOWEST_FIRST_MS = 10_000;
const { maxSessions: BOARD_SESSIONS } = SMALL_AGENT_LIMITS;
/** Calls may fail in whatever way, but have no wrong answer. */
export const MAY_FAIL: readonly Allowed[] = [
  ...Object.keys(CALL_ERRORS).filter((code) => code !== "REMOTE"),
  ...["NOT_MADE", "OPEN_AT_END"],
].map((code) => ({ code, rate: "100%" }));
/** What a program refuses is its own affair. */
const MAY_REFUSE: readonly Allowed[] = [{ code: "REMOTE" }];

/** A scenario of a user, whose devices, clients and promises stay. */
export interface Base {
  readonly scenario: Scenario;
  /** What to call on devices that no client calls. */
  readonly methods: readonly string[];
}

/** Who is there. */
interface Fleet {
  readonly devices: DeviceGroupSpec[];
  readonly clients: ClientGroupSpec[];
  readonly drivers: DriverSpec[];
}

export class Drawing {
  private readonly draws: Stream;

  constructor(draws: Stream) {
    this.draws = draws;
  }

  below(limit: number): number {
    return this.draws.below(limit);
  }

  likely(percent: number): boolean {
    return this.draws.below(100) < percent;
  }

  one<T>(list: readonly T[]): T {
    return list[this.draws.below(list.length)] as T;
  }

  scenario(name: string, base?: Base): Scenario {
    const nodes = base?.scenario.relay?.nodes ?? (this.likely(40) ? 2 + this.below(2) : 1);
    const isCalm = this.likely(25);
    const busyS = 60 + this.below(180);
    const endS = busyS + (this.likely(70) ? QUIET_S : 0);
    const { devices, clients, drivers } = this.fleet(endS, base);
    const isRekeyed = !isCalm && this.likely(15);
    const isLong = isRekeyed && this.likely(40);
    let faults: Fault[] = [];
    if (isRekeyed) faults = this.rekeys(busyS, nodes, isLong);
    else if (!isCalm) faults = this.faults(busyS, nodes, clients);
    const { relay: _relay, faults: own = [], ...rest } = base?.scenario ?? ({} as Scenario);
    return {
      ...rest,
      name,
      duration: `${endS + (isLong ? TRIAL_S : 0)}s`,
      devices,
      clients,
      drivers,
      faults: [...(this.likely(50) ? own.filter(({ at }) => seconds(at) < endS) : []), ...faults],
      relay: { ...this.relay(), ...base?.scenario.relay, nodes },
      allow: [
        ...(rest.allow ?? []),
        ...MAY_REFUSE,
        ...(isCalm ? lossesOf(devices, clients) : MAY_FAIL),
      ],
      // Faults break them, as is to be expected.
      thresholds: isCalm ? (rest.thresholds ?? []).filter(isOfAnyFleet) : [],
      phases: [],
    };
  }

  /** The same, slightly different. */
  mutant({ faults: before = [], ...scenario }: Scenario): Scenario {
    const nodes = scenario.relay?.nodes ?? 1;
    const clients = (scenario.clients ?? []) as { name: string }[];
    const endS = seconds(scenario.duration);
    const faults = [...before];
    const fault = (): Fault =>
      this.fault(this.one(this.sorts(nodes)), this.below(endS - 5), nodes, endS, clients);
    for (let changes = 1 + this.below(3); changes > 0; changes--) {
      const at = this.below(faults.length);
      const old = faults[at];
      const how = this.below(5);
      if (old === undefined || how === 0) faults.push(fault());
      else if (how === 1) faults.splice(at, 1);
      else if (how === 2) faults[at] = { ...old, at: near(old.at, this.below(21) - 10, endS) };
      else if (how === 3) faults.push({ ...old, at: near(old.at, this.below(41) - 20, endS) });
      else faults[at] = { ...this.fault(old, 0, nodes, endS, clients), at: old.at };
    }
    // Where the original was calm, its calls had to succeed.
    const allowed = scenario.allow ?? [];
    const isNew = ({ code, rate }: Allowed) =>
      !allowed.some((each) => each.code === code && each.rate === rate);
    const allow = [...allowed, ...MAY_FAIL.filter(isNew)];
    return { ...scenario, allow, thresholds: [], faults: faults.slice(0, 2 * MAX_FAULTS) };
  }

  private fleet(endS: number, base?: Base): Fleet {
    if (base !== undefined) {
      const devices = this.fewer(base.scenario.devices);
      return { devices, clients: this.callers(base, devices), drivers: [] };
    }
    if (this.likely(8)) return this.crowd();
    const devices = this.devices();
    return { devices, clients: this.clients(devices, endS), drivers: this.drivers(devices) };
  }

  /** More clients than a board holds sessions for: it drops one to make room for another. */
  private crowd(): Fleet {
    const kind = this.one(["sensor", "valve", "echo"] as const);
    const idempotent = this.likely(40);
    const clients = Array.from({ length: BOARD_SESSIONS + 1 + this.below(4) }, (_, i) => ({
      name: `c${i}`,
      devices: "g0",
      every: `${12 + this.below(4)}s`,
      from: `${LATEST_S - this.below(20)}s`,
      idempotent,
      ...(this.likely(25) ? { leaves: true } : {}),
    }));
    const devices = [{ group: "g0", count: 1 + this.below(2), kind, limits: "board" as const }];
    return { devices, clients, drivers: [] };
  }

  private devices(): DeviceGroupSpec[] {
    return Array.from({ length: 1 + this.below(2) }, (_, i) => {
      const group = {
        group: `g${i}`,
        count: this.likely(25) ? 6 + this.below(7) : 1 + this.below(3),
        kind: this.one(KIND_NAMES),
        ...(this.likely(50) ? { start: { over: "5s" } } : {}),
        ...(this.likely(30) ? { network: this.network() } : {}),
        ...(this.likely(60) ? { packet_version: this.one(["2", "3", "4"] as const) } : {}),
        ...(this.likely(30) ? { limits: "board" as const } : {}),
      };
      if (group.kind === "bridge") {
        // What is written to its ports fills a slow line, and calls time out behind it.
        delete group.network?.bandwidth;
        // It is no board: programs come to its ports, and are killed, in greater number.
        delete group.limits;
        // Each has two ports that are busy all the time.
        group.count = 1;
      }
      return group;
    });
  }

  private clients(devices: readonly DeviceGroupSpec[], endS: number): ClientGroupSpec[] {
    // Twice in the shortest time that is left, so that every one of them makes a call.
    const longestMs = Math.min(LONGEST_MS, (endS - LATEST_S) * 500);
    return Array.from({ length: this.likely(15) ? 0 : 1 + this.below(2) }, (_, i) => {
      const { group, kind, network } = this.one(devices);
      const isQuick = network === undefined && kind !== "busy" && kind !== "bridge";
      const slowestMs = network === undefined ? SLOWEST_MS : SLOWEST_FIRST_MS;
      const loopMs = this.between(slowestMs, longestMs);
      const openMs = this.between(isQuick ? SHORTEST_MS : SLOWEST_MS, longestMs);
      // Enough bytes to fill queues; on a slow line alone, they would take longer than a call may.
      const isLarge = kind === "echo" && network?.bandwidth === undefined && this.likely(30);
      const large = { call: "echo", params: { text: "z".repeat(1000 * (1 + this.below(30))) } };
      return {
        name: `c${i}`,
        devices: group,
        ...(this.likely(60)
          ? this.loop(
              isLarge ? (isQuick ? 1000 : slowestMs) + 1000 * this.below(3) : loopMs,
              isQuick,
            )
          : { rate: `${Math.ceil(60_000 / openMs)}/m` }),
        from: `${LATEST_S - this.below(20)}s`,
        ...(isLarge ? large : {}),
        ...(this.likely(40) ? { presence: true } : {}),
        ...(this.likely(40) ? { idempotent: true } : {}),
        ...(this.likely(15) ? { abort_after: `${100 + this.below(900)}ms` } : {}),
        ...(this.likely(15) ? { wait_for_agent: true } : {}),
        // A first call takes three round trips.
        ...(this.likely(20) ? { timeout: `${(isQuick ? 1 : 10) + this.below(20)}s` } : {}),
      };
    });
  }

  private loop(everyMs: number, isQuick: boolean): Pick<ClientGroupSpec, "every" | "leaves"> {
    const leaves = this.likely(25) && (isQuick || everyMs >= SLOWEST_FIRST_MS);
    return { every: `${everyMs}ms`, ...(leaves ? { leaves } : {}) };
  }

  private drivers(devices: readonly DeviceGroupSpec[]): DriverSpec[] {
    const busy = devices.filter(({ kind }) => kind === "busy");
    const drivers: DriverSpec[] = [];
    for (const { group, network } of busy) {
      if (this.likely(70)) drivers.push({ kind: "subscriber", devices: group });
      // They fill a slow line, and calls time out behind them.
      if (network?.bandwidth === undefined && this.likely(50)) {
        drivers.push({ kind: "streams", devices: group, every: `${20 + this.below(60)}s` });
      }
    }
    for (const { group, kind } of devices) {
      if (kind === "bridge") drivers.push({ kind: "serial", devices: group });
    }
    for (const kind of RAW) {
      // Again in the quiet end: a fault ends their play.
      const every = `${60 + this.below(90)}s`;
      if (this.likely(8)) drivers.push({ kind, from: `${15 + this.below(10)}s`, every });
    }
    return drivers;
  }

  /** Of a user's scenario: a few of each group. */
  private fewer(devices: readonly DeviceGroupSpec[]): DeviceGroupSpec[] {
    return devices.map(({ start: _, ...group }) => ({
      ...group,
      count: Math.min(group.count, 1 + this.below(4)),
    }));
  }

  /** Of a user's scenario: its clients, and some for what nobody calls. */
  private callers({ scenario, methods }: Base, devices: readonly DeviceGroupSpec[]) {
    const own = (scenario.clients ?? []).map(({ until: _, ...client }, i) => ({
      ...client,
      name: client.name ?? `clients-${i + 1}`,
      // A sequence names clients by their number.
      count: client.steps === undefined ? Math.min(client.count ?? 1, 3) : (client.count ?? 1),
      from: `${10 + this.below(20)}s`,
    }));
    const called = new Set(own.map(({ devices: group }) => group));
    const others = devices.flatMap(({ group }): ClientGroupSpec[] => {
      if (called.has(group) || methods.length === 0) return [];
      return Array.from({ length: 1 + this.below(3) }, (_, i) => ({
        name: `${group}-${i}`,
        devices: group,
        call: this.one(methods),
        params: this.params(),
        every: `${3 + this.below(30)}s`,
        from: `${10 + this.below(20)}s`,
        ...(this.likely(30) ? { presence: true } : {}),
      }));
    });
    return [...own, ...others] as (ClientGroupSpec & { name: string })[];
  }

  /** Milliseconds between two calls, as likely to be near the one limit as near the other. */
  private between(shortestMs: number, longestMs: number): number {
    const orders = Math.log(longestMs / shortestMs);
    return Math.round(shortestMs * Math.exp((this.below(1001) / 1000) * orders));
  }

  private params(): object {
    return this.one<object>([
      {},
      [],
      { n: this.below(100), percent: this.below(101), on: this.likely(50), text: "x" },
      { n: -1, percent: 1e9, on: null, text: "z".repeat(this.below(4000)) },
    ]);
  }

  private relay(): NonNullable<Scenario["relay"]> {
    return {
      ...(this.likely(30) ? { session_ttl: this.one(["30s", "60s", "90s"]) } : {}),
      ...(this.likely(30) ? { outbox: this.one(["64KB", "128KB", "256KB"]) } : {}),
      ...(this.likely(15) ? { store_latency: `${this.below(200)}ms` } : {}),
    };
  }

  private sorts(nodes: number): Sort[] {
    return SORTS.filter(({ kind }) => {
      const isOfNodes = kind.startsWith("bus.") || kind === "relay.freeze";
      return nodes > 1 || !isOfNodes;
    });
  }

  private faults(busyS: number, nodes: number, clients: readonly ClientGroupSpec[]): Fault[] {
    const share = this.one(SHARES);
    const used = this.sorts(nodes).filter(() => this.likely(share));
    const faults: Fault[] = [];
    let at = 15 + this.below(20);
    while (used.length > 0 && at < busyS && faults.length < MAX_FAULTS) {
      faults.push(this.fault(this.one(used), at, nodes, busyS, clients));
      at += this.likely(50) ? this.below(5) : 20 + this.below(60);
    }
    return faults;
  }

  /** Secrets that are changed by several owners, and what comes between the steps of each. */
  private rekeys(busyS: number, nodes: number, isLong: boolean): Fault[] {
    const faults: Fault[] = [];
    let at = 15 + this.below(20);
    while (at < busyS && faults.length < MAX_FAULTS) {
      const rekey = this.fault({ kind: "device.rekey" }, at, nodes, busyS, []);
      faults.push(isLong ? { ...rekey, for: `${5 + this.below(12)}m` } : rekey);
      const between = { kind: this.one(BETWEEN) };
      if (this.likely(80))
        faults.push(this.fault(between, at + this.below(10), nodes, busyS + 10, []));
      at += this.likely(50) ? this.below(8) : 20 + this.below(60);
    }
    return faults;
  }

  private network() {
    return {
      latency: `${this.below(400)}ms`,
      jitter: `${this.below(300)}ms`,
      ...(this.likely(50) ? { bandwidth: `${1 + this.below(16)}KB/s` } : {}),
    };
  }

  private fault(
    { kind, attack }: Sort,
    at: number,
    nodes: number,
    endS: number,
    clients: readonly { name?: string | undefined }[],
  ): Fault {
    const { properties } = FAULTS[kind].schema as unknown as {
      properties: Record<string, unknown>;
    };
    const longest = (): number => Math.min(this.likely(33) ? 120 : 20, endS - at);
    const value: Record<string, () => unknown> = {
      for: () => `${1 + this.below(Math.max(1, longest()))}s`,
      share: () => `${10 + this.below(91)}%`,
      messages: () => `${1 + this.below(100)}%`,
      latency: () => `${this.below(3000)}ms`,
      jitter: () => `${this.below(1000)}ms`,
      bandwidth: () => `${50 + this.below(4000)}B/s`,
      by: () => `${1 + this.below(120)}m`,
      back: () => this.likely(50),
      node: () => 1 + this.below(nodes),
      attack: () => attack,
      storage: () => (this.likely(50) ? "keep" : "lose"),
      boot: () => this.likely(50),
      trial: () => `${5 + this.below(40)}s`,
    };
    const fields = Object.keys(properties).flatMap((key) => {
      const draw = value[key];
      return draw === undefined ? [] : [[key, draw()]];
    });
    const { length } = clients;
    const ofClients = "clients" in properties && length > 0 && this.likely(25);
    const target = ofClients ? { clients: this.one(clients).name } : {};
    return { kind, at: `${at}s`, ...Object.fromEntries(fields), ...target } as Fault;
  }
}

export const drawScenario = (seed: number): Scenario =>
  new Drawing(new Stream(`scenario ${seed}`)).scenario(`random ${seed}`);

/** Calls that have no answer without any fault: given up, or dropped by a board that is full. */
const lossesOf = (
  devices: readonly DeviceGroupSpec[],
  clients: readonly ClientGroupSpec[],
): Allowed[] => {
  const isFull = ({ group, limits }: DeviceGroupSpec): boolean =>
    limits === "board" &&
    clients.filter((client) => client.devices === group).length > BOARD_SESSIONS;
  return [
    ...(clients.some(({ abort_after }) => abort_after !== undefined) ? [{ code: "ABORTED" }] : []),
    ...(devices.some(isFull) ? [{ code: "OUTCOME_UNKNOWN", rate: "100%" }] : []),
  ];
};

/** Whether a threshold holds for a smaller fleet too. */
const isOfAnyFleet = (threshold: NonNullable<Scenario["thresholds"]>[number]): boolean =>
  !/agents\.|call\.(sent|ok)|relay\./.test(
    typeof threshold === "string" ? threshold : threshold.expression,
  );

const near = (at: string, byS: number, endS: number): string =>
  `${Math.max(1, Math.min(endS - 2, Math.round(seconds(at)) + byS))}s`;

const seconds = (text: string): number => durationMs(text) / 1000;
