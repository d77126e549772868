/**
 * Random scenarios for searches: small fleets, minutes long, with the faults of a few kinds that
 * come in bursts, and a quiet end.
 */
import { Stream } from "../base/random-streams.ts";
import {
  FAULTS,
  type Fault,
  type FaultKind,
  KIND_NAMES,
  type Scenario,
} from "../scenario/schema.ts";

/** Those that need a file of their own are left out. */
const KINDS = (Object.keys(FAULTS) as FaultKind[]).filter((kind) => kind !== "device.update");
const ATTACKS = ["drop", "duplicate", "reorder", "replay", "forge"] as const;
/** Without faults, before the end: longer than anything takes to recover. */
const QUIET_S = 140;

export function drawScenario(seed: number): Scenario {
  const draws = new Stream(`scenario ${seed}`);
  const one = <T>(list: readonly T[]): T => list[draws.below(list.length)] as T;
  const likely = (percent: number): boolean => draws.below(100) < percent;
  const nodes = likely(40) ? 2 + draws.below(2) : 1;
  const busyS = 60 + draws.below(180);
  const endS = busyS + (likely(70) ? QUIET_S : 0);
  const devices = Array.from({ length: 1 + draws.below(2) }, (_, i) => ({
    group: `g${i}`,
    count: 1 + draws.below(3),
    kind: one(KIND_NAMES),
    ...(likely(50) ? { start: { over: "5s" } } : {}),
    ...(likely(30) ? { network: drawNetwork(draws) } : {}),
  }));
  const clients = Array.from({ length: draws.below(3) }, (_, i) => ({
    name: `c${i}`,
    devices: one(devices).group,
    ...(likely(60) ? { every: `${5 + draws.below(40)}s` } : { rate: `${1 + draws.below(60)}/m` }),
    from: `${10 + draws.below(20)}s`,
    ...(likely(40) ? { presence: true } : {}),
    ...(likely(40) ? { idempotent: true } : {}),
  }));
  const used = KINDS.filter((kind) => {
    const isOfNodes = kind.startsWith("bus.") || kind === "relay.freeze";
    return likely(25) && (nodes > 1 || !isOfNodes);
  });
  const faults: Fault[] = [];
  let at = 15 + draws.below(20);
  while (used.length > 0 && at < busyS && faults.length < 12) {
    faults.push(drawFault(one(used), at, { draws, nodes, endS: busyS, clients }));
    at += likely(50) ? draws.below(5) : 20 + draws.below(60);
  }
  return {
    name: `random ${seed}`,
    duration: `${endS}s`,
    devices,
    clients,
    faults,
    ...(nodes > 1 || likely(30)
      ? { relay: { nodes, ...(likely(30) ? { session_ttl: "60s" } : {}) } }
      : {}),
    allow: [{ rate: "100%" }],
  };
}

const drawNetwork = (draws: Stream) => ({
  latency: `${draws.below(400)}ms`,
  jitter: `${draws.below(300)}ms`,
  ...(draws.below(2) === 0 ? { bandwidth: `${1 + draws.below(16)}KB/s` } : {}),
});

function drawFault(
  kind: FaultKind,
  at: number,
  world: { draws: Stream; nodes: number; endS: number; clients: readonly { name: string }[] },
): Fault {
  const { draws, nodes, endS, clients } = world;
  const { properties } = FAULTS[kind].schema as unknown as { properties: Record<string, unknown> };
  const value: Record<string, () => unknown> = {
    for: () =>
      `${1 + draws.below(Math.max(1, Math.min(draws.below(3) === 0 ? 120 : 20, endS - at)))}s`,
    share: () => `${10 + draws.below(91)}%`,
    messages: () => `${1 + draws.below(100)}%`,
    latency: () => `${draws.below(3000)}ms`,
    jitter: () => `${draws.below(1000)}ms`,
    bandwidth: () => `${50 + draws.below(4000)}B/s`,
    by: () => `${1 + draws.below(120)}m`,
    back: () => draws.below(2) === 0,
    node: () => 1 + draws.below(nodes),
    attack: () => ATTACKS[draws.below(ATTACKS.length)],
    storage: () => (draws.below(2) === 0 ? "keep" : "lose"),
  };
  const fields = Object.keys(properties).flatMap((key) => {
    const draw = value[key];
    return draw === undefined ? [] : [[key, draw()]];
  });
  const { length } = clients;
  const ofClients = "clients" in properties && length > 0 && draws.below(4) === 0;
  const target = ofClients ? { clients: clients[draws.below(length)]?.name } : {};
  return { kind, at: `${at}s`, ...Object.fromEntries(fields), ...target } as Fault;
}
