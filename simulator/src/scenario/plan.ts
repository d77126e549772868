/**
 * The plan of a run: every device's start, every client's calls and every fault with its targets,
 * drawn from the seed before anything runs. Both worlds follow the same plan. Times are integer
 * microseconds from the start of the run.
 */
import { createHash } from "node:crypto";
import type { Version } from "@blindrelay/protocol/crypto";
import { Stream } from "../base/random-streams.ts";
import type { ClientGroupSpec, Fault, NetworkSpec, Scenario } from "./schema.ts";
import { plural as count, durationMs, ratePerMs, shareOf, showMs, sizeOf } from "./units.ts";

/** The account that owns everything, unless a scenario names others. */
export const DEFAULT_ACCOUNT = "sim";
const DEFAULT_LATENCY = "20ms";
const DEFAULT_JITTER = "5ms";
/** From the last device's start to the first call: time to connect, even on a bad network. */
const SETTLE_MS = 10_000;
/** Enough to keep two cores busy; more would only measure the queue. */
const AT_ONCE = 64;
/** An open loop is planned call by call. */
const MAX_OPEN_CALLS = 5_000_000;

export interface PlannedNetwork {
  latencyUs: number;
  jitterUs: number;
  /** 0: unlimited. */
  bytesPerS: number;
}

export interface PlannedDevice {
  id: string;
  group: string;
  /** Its number in the group, from 0. */
  index: number;
  startUs: number;
  address: string;
  network: PlannedNetwork;
  skewMs: number;
  driftPpm: number;
  kind: string | null;
  program: string | null;
  version: Version;
  /** A board's engine, instead of Node. */
  engine?: "xs" | "espruino";
  /** Those of a board, instead of Node's. */
  limits?: "board";
  /** Its account. */
  account: string;
}

/** The calls of one group of clients. */
export interface PlannedLoad {
  name: string;
  spec: ClientGroupSpec;
  network: PlannedNetwork;
  /** The devices of each client, as indices into `devices`. */
  clients: number[][];
  fromUs: number;
  untilUs: number;
  timeoutMs: number;
  /** Closed loop: microseconds from one call to a device to the next; 0 for an open loop. */
  everyUs: number;
  /** Closed loop: when each device is first called, by its position in the group. */
  firstUs: number[];
  /** Open loop: when, and which device, as an index into `devices`. */
  arrivals: { atUs: number; device: number }[];
  /** As many calls to each device, `atOnce` at a time; 0 for the loops. */
  each: number;
  atOnce: number;
}

export interface PlannedFault {
  atUs: number;
  /** Its end; `atUs` if it has no duration. */
  endUs: number;
  spec: Fault;
  /** Indices into `devices`. */
  devices: number[];
  /** Client numbers over all loads, in order. */
  clients: number[];
}

export interface Plan {
  seed: number;
  endUs: number;
  devices: PlannedDevice[];
  loads: PlannedLoad[];
  faults: PlannedFault[];
  /** The run ends with its last call: all that call make a number of calls to each device. */
  endsWithCalls: boolean;
}

/** An open loop that is too large to plan. */
export class TooManyCalls extends RangeError {
  /** Its number among the scenario's clients. */
  readonly load: number;

  constructor(load: number, calls: number) {
    super(`${calls} calls; at most ${MAX_OPEN_CALLS} in an open loop`);
    this.load = load;
  }
}

export const makePlan = (scenario: Scenario, seed: number): Plan => {
  const endUs = us(scenario.duration);
  const devices = planDevices(scenario, seed);
  const loads = planLoads(scenario, seed, devices, endUs);
  const faults = planFaults(scenario, seed, devices, loads);
  const calling = loads.filter(makesCalls);
  const endsWithCalls = calling.length > 0 && calling.every(({ each }) => each > 0);
  return { seed, endUs, devices, loads, faults, endsWithCalls };
};

const us = (text: string): number => Math.round(durationMs(text) * 1000);

const network = (...specs: (NetworkSpec | undefined)[]): PlannedNetwork => {
  const spec: NetworkSpec = Object.assign({}, ...specs.filter((one) => one !== undefined));
  return {
    latencyUs: us(spec.latency ?? DEFAULT_LATENCY),
    jitterUs: us(spec.jitter ?? DEFAULT_JITTER),
    bytesPerS: spec.bandwidth === undefined ? 0 : sizeOf(spec.bandwidth),
  };
};

/** A separate address for each device, from the ranges for private networks. */
const addressOf = (n: number): string => `10.${(n >> 16) & 255}.${(n >> 8) & 255}.${n & 255}`;

const planDevices = (scenario: Scenario, seed: number): PlannedDevice[] => {
  const devices: PlannedDevice[] = [];
  for (const group of scenario.devices) {
    const fromUs = us(group.start?.at ?? "0s");
    const overUs = us(group.start?.over ?? "0s");
    const skewMs = durationMs(group.clock?.skew ?? "0s");
    const drift = group.clock?.drift_ppm ?? 0;
    const first = (group.first ?? 1) - 1;
    for (let index = first; index < first + group.count; index++) {
      const id = `${group.group}-${String(index + 1).padStart(5, "0")}`;
      const draw = new Stream(`${seed}/${id}/plan`);
      devices.push({
        id,
        group: group.group,
        index,
        startUs: fromUs + draw.below(overUs + 1),
        address: group.address ?? addressOf(devices.length + 1),
        network: network(scenario.network, group.network),
        skewMs: skewMs === 0 ? 0 : draw.below(2 * skewMs + 1) - skewMs,
        driftPpm: drift === 0 ? 0 : draw.below(2 * drift + 1) - drift,
        kind: group.kind ?? null,
        program: group.program ?? null,
        version: group.packet_version ?? "1",
        ...(isBoard(group) ? { engine: group.engine } : {}),
        ...(group.limits === "board" ? { limits: group.limits } : {}),
        account: group.account ?? DEFAULT_ACCOUNT,
      });
    }
  }
  return devices;
};

const isBoard = <T extends { engine?: string }>(
  group: T,
): group is T & { engine: "xs" | "espruino" } =>
  group.engine !== undefined && group.engine !== "node";

const planLoads = (
  scenario: Scenario,
  seed: number,
  devices: readonly PlannedDevice[],
  endUs: number,
): PlannedLoad[] =>
  (scenario.clients ?? []).map((spec, i) => {
    const name = spec.name ?? `clients-${i + 1}`;
    const members = devices.flatMap(({ group }, n) => (group === spec.devices ? [n] : []));
    const lastUs = latest(members.map((n) => (devices[n] as PlannedDevice).startUs));
    const each = spec.calls ?? 0;
    const soonUs = each > 0 ? 0 : lastUs + SETTLE_MS * 1000;
    const fromUs = spec.from === undefined ? soonUs : us(spec.from);
    const untilUs = spec.until === undefined ? endUs : us(spec.until);
    // In a sequence, other clients than a device's own call it too.
    const most = spec.steps === undefined ? members.length : Number.POSITIVE_INFINITY;
    const count = Math.min(spec.count ?? 1, most);
    const everyUs = spec.every === undefined ? 0 : us(spec.every);
    const load: PlannedLoad = {
      name,
      spec,
      network: network(scenario.network, spec.network),
      clients: Array.from({ length: count }, (_, k) => members.filter((_, m) => m % count === k)),
      fromUs,
      untilUs,
      timeoutMs: durationMs(spec.timeout ?? "30s"),
      everyUs,
      firstUs: [],
      arrivals: [],
      each,
      atOnce: Math.min(spec.at_once ?? AT_ONCE, members.length),
    };
    if (everyUs > 0) {
      load.firstUs = members.map((n) => {
        const { id } = devices[n] as PlannedDevice;
        return fromUs + new Stream(`${seed}/${name}/${id}/first`).below(everyUs);
      });
    } else if (spec.rate !== undefined) {
      // One call at a random time in each slot: a steady rate without a fixed rhythm.
      const { calls, dueUs } = openLoop(spec, untilUs - fromUs);
      if (calls > MAX_OPEN_CALLS) throw new TooManyCalls(i, calls);
      const draw = new Stream(`${seed}/${name}/arrivals`);
      for (let k = 0; k < calls; k++) {
        const atUs = fromUs + Math.floor(dueUs(k + draw.fraction()));
        load.arrivals.push({ atUs, device: members[draw.below(members.length)] as number });
      }
    }
    return load;
  });

/** How many calls fit into `forUs`, and when after its beginning the call number n is due. */
const openLoop = (
  { rate = "0/s", to_rate: toRate = rate }: ClientGroupSpec,
  forUs: number,
): { calls: number; dueUs: (n: number) => number } => {
  const [first, last] = [ratePerMs(rate), ratePerMs(toRate)];
  const growth = ((last - first) / forUs) * 1000;
  const slotUs = 2000 / (first + last);
  // n is the integral of the rate up to that time.
  const grown = (n: number): number =>
    ((Math.sqrt(Math.max(0, first ** 2 + 2 * growth * n)) - first) / growth) * 1000;
  return {
    calls: Math.max(0, Math.floor(forUs / slotUs)),
    dueUs: first === last ? (n) => n * slotUs : grown,
  };
};

const planFaults = (
  scenario: Scenario,
  seed: number,
  devices: readonly PlannedDevice[],
  loads: readonly PlannedLoad[],
): PlannedFault[] =>
  (scenario.faults ?? [])
    .map((spec, i) => planFault(spec, `${seed}/${i}`, devices, loads))
    .sort((a, b) => a.atUs - b.atUs);

/** One fault with its targets. `lots`: the name of the random stream that they are drawn from. */
export const planFault = (
  spec: Fault,
  lots: string,
  devices: readonly PlannedDevice[],
  loads: readonly PlannedLoad[],
): PlannedFault => {
  const atUs = us(spec.at);
  const share = spec.share === undefined ? 1 : shareOf(spec.share);
  const fault = { atUs, endUs: atUs + us(spec.for ?? lengthOf(spec)), spec };
  if (spec.clients !== undefined) {
    const names = loads.flatMap(({ name, clients }) => clients.map(() => name));
    const members = names.flatMap((name, n) => (name === spec.clients ? [n] : []));
    const lot = (n: number): string => `${lots}/client ${n}/fault`;
    return { ...fault, devices: [], clients: choose(members, share, lot) };
  }
  if (!aimsAtDevices(spec)) return { ...fault, devices: [], clients: [] };
  const members = devices.flatMap(({ group }, n) =>
    spec.devices === undefined || group === spec.devices ? [n] : [],
  );
  const lot = (n: number): string => `${lots}/${(devices[n] as PlannedDevice).id}/fault`;
  return { ...fault, devices: choose(members, share, lot), clients: [] };
};

const latest = (times: readonly number[]): number =>
  times.reduce((a, b) => Math.max(a, b), Number.NEGATIVE_INFINITY);

const lengthOf = (spec: Fault): string => {
  if (spec.kind === "device.reboot" || spec.kind === "relay.crash") return "2s";
  if (spec.kind === "device.update") return spec.trial ?? "60s";
  if (spec.kind === "device.rekey") return "30s";
  if (spec.kind === "relay.restart") return "1s";
  if (spec.kind === "relay.freeze") return "30s";
  return spec.kind === "operator.rotate" ? "5s" : "0s";
};

const aimsAtDevices = ({ kind }: Fault): boolean =>
  !["relay.", "store.", "bus."].some((prefix) => kind.startsWith(prefix));

/** The share of `members` whose lots are lowest: at least one, if there are any. */
const choose = (members: number[], share: number, lot: (n: number) => string): number[] => {
  if (share >= 1 || members.length === 0) return members;
  const count = Math.max(1, Math.round(members.length * share));
  return members
    .map((n) => ({ n, lot: new Stream(lot(n)).next() }))
    .sort((a, b) => a.lot - b.lot || a.n - b.n)
    .slice(0, count)
    .map(({ n }) => n)
    .sort((a, b) => a - b);
};

/** A digest of the whole plan. */
export const planHash = (plan: Plan): string =>
  createHash("sha256").update(JSON.stringify(plan)).digest("hex").slice(0, 16);

const NAMED = 5;

const rateOf = ({ rate, to_rate: toRate }: ClientGroupSpec): string =>
  toRate === undefined ? `${rate}` : `${rate} to ${toRate}`;

/** The plan as readable lines, in order of time. */
export const describePlan = (plan: Plan): string[] => {
  const { devices, loads, faults } = plan;
  const lines: { atUs: number; text: string }[] = [];
  for (const [group, members] of Map.groupBy(devices, (device) => device.group)) {
    const starts = members.map(({ startUs }) => startUs);
    const [first, last] = [-latest(starts.map((at) => -at)), latest(starts)];
    const what = (members[0] as PlannedDevice).program ?? (members[0] as PlannedDevice).kind;
    const until = last > first ? `, the last at ${time(last)}` : "";
    const text = `${count(members.length, "device")} of ${group} (${what}) started${until}`;
    lines.push({ atUs: first, text });
  }
  for (const load of loads) {
    const called = load.clients.flat().length;
    const who = `${load.name}: ${count(load.clients.length, "client")}`;
    const { steps } = load.spec;
    const method =
      steps === undefined
        ? (load.spec.call ?? "the kind's own questions")
        : count(steps.length, "step");
    const calls = plannedCalls(load);
    const how =
      load.everyUs > 0
        ? `${method} to each of ${called} every ${load.spec.every}`
        : load.each > 0
          ? `${method} to each of ${called} ${load.each} times, ${load.atOnce} at once,`
          : load.spec.rate === undefined
            ? "no calls"
            : `${method} to ${called} at ${rateOf(load.spec)}`;
    const text = `${who}, ${how} until ${time(load.untilUs)}: about ${calls} calls`;
    lines.push({ atUs: load.fromUs, text });
  }
  for (const { atUs, endUs, spec, devices: hit, clients } of faults) {
    const ids = hit.slice(0, NAMED).map((n) => (devices[n] as PlannedDevice).id);
    const more = hit.length > NAMED ? ` and ${hit.length - NAMED} more` : "";
    const whom =
      clients.length > 0
        ? `: ${count(clients.length, "client")} of ${spec.clients}`
        : hit.length > 0
          ? `: ${count(hit.length, "device")} (${ids.join(", ")}${more})`
          : "";
    const until = endUs > atUs ? `, until ${time(endUs)}` : "";
    lines.push({ atUs, text: `${spec.kind}${whom}${until}` });
  }
  lines.sort((a, b) => a.atUs - b.atUs);
  lines.push({ atUs: plan.endUs, text: "the end" });
  return lines.map(({ atUs, text }) => `${time(atUs).padStart(10)}  ${text}`);
};

/** The calls that a load makes if none has to wait for the previous one. */
export const plannedCalls = (load: PlannedLoad): number =>
  turnsOf(load) * (load.spec.steps?.length ?? 1);

const turnsOf = (load: PlannedLoad): number => {
  if (load.each > 0) return load.each * load.clients.flat().length;
  if (load.everyUs === 0) return load.arrivals.length;
  let calls = 0;
  for (const firstUs of load.firstUs) {
    if (firstUs < load.untilUs) calls += Math.ceil((load.untilUs - firstUs) / load.everyUs);
  }
  return calls;
};

export const plannedOf = ({ loads }: Plan): number =>
  loads.reduce((sum, load) => sum + plannedCalls(load), 0);

/** Whether it calls, and is not only there for presence. */
export const makesCalls = ({ spec }: PlannedLoad): boolean =>
  spec.every !== undefined || spec.rate !== undefined || spec.calls !== undefined;

const time = (atUs: number): string => showMs(atUs / 1000);
