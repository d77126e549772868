/**
 * The shaped networks of a live run: a device or a client has one if the scenario specifies it or a
 * fault needs it. Live links have the network's own latency; a scenario's is added.
 */
import type { LinkPort } from "@blindrelay/agent-sdk/ports";
import { Stream } from "../random-streams.ts";
import type { Plan, PlannedDevice, PlannedLoad } from "../scenario/plan.ts";
import type { Fault, NetworkSpec, Scenario } from "../scenario/schema.ts";
import { durationMs, sizeOf } from "../scenario/units.ts";
import { liveLinkPort } from "./link.ts";
import { type Shape, Shaper, UNSHAPED } from "./shaped-link.ts";

/** For the plan's device `n`; null if it has none. */
export function shapeOfDevice(scenario: Scenario, plan: Plan, n: number): Shape | null {
  const { group } = plan.devices[n] as PlannedDevice;
  const own = scenario.devices.find((one) => one.group === group)?.network;
  return shapeFor({ ...scenario.network, ...own }, isTarget(plan, n, /^(net\.|device\.)/));
}

/** Whether a fault of these kinds hits the plan's device `n`. */
export function isTarget({ faults }: Plan, n: number, kinds: RegExp): boolean {
  return faults.some(({ spec, devices }) => kinds.test(spec.kind) && devices.includes(n));
}

/** The clients' networks, by client number over all loads. */
export class ClientNetworks {
  private readonly scenario: Scenario;
  private readonly plan: Plan;
  private readonly loads: readonly PlannedLoad[];
  private readonly shapers: (Shaper | null)[] = [];

  constructor(scenario: Scenario, plan: Plan) {
    this.scenario = scenario;
    this.plan = plan;
    this.loads = plan.loads.flatMap((load) => load.clients.map(() => load));
  }

  linkOf(client: number): LinkPort {
    const { spec } = this.loads[client] as PlannedLoad;
    const needed = this.plan.faults.some(({ clients }) => clients.includes(client));
    const shape = shapeFor({ ...this.scenario.network, ...spec.network }, needed);
    const port = liveLinkPort({ gathers: true });
    if (shape === null) return port;
    const draws = new Stream(`${this.plan.seed}/client ${client}/net`);
    const shaper = new Shaper(port, shape, draws);
    this.shapers[client] = shaper;
    return shaper;
  }

  play(client: number, fault: Fault, on: boolean): void {
    this.shapers[client]?.play(fault, on);
  }
}

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
