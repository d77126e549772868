import { expect, test } from "vitest";
import { makePlan } from "../plan.ts";
import { loadPrograms } from "../run/programs.ts";
import type { Fault, Scenario } from "../scenario/schema.ts";
import type { Device } from "./device.ts";
import { World } from "./world.ts";

/** What a fault changes, as far as one number says. */
type Reading = (world: World) => unknown;

const device = ({ devices }: World): Device => devices[0] as Device;

/** Kind, fields of the first and of the second fault, and what to look at. */
const OVERLAPS: [Fault["kind"], Partial<Fault>, Partial<Fault>, Reading, unknown[]][] = [
  [
    "net.delay",
    { latency: "300ms" },
    { latency: "600ms" },
    (world) => device(world).conditions.latencyUs,
    [20_000, 300_000, 600_000],
  ],
  [
    "net.bandwidth",
    { bandwidth: "2KB/s" },
    { bandwidth: "1KB/s" },
    (world) => device(world).conditions.bytesPerS,
    [0, 2048, 1024],
  ],
  [
    "store.slow",
    { latency: "1s" },
    { latency: "2s" },
    (world) => world.store.latencyMs,
    [1, 1000, 2000],
  ],
  [
    "bus.delay",
    { latency: "30ms" },
    { latency: "60ms" },
    (world) => world.relay.bus?.latencyUs,
    [300, 30_000, 60_000],
  ],
  ["device.reboot", {}, {}, (world) => device(world).core === null, [false, true, true]],
  ["relay.freeze", {}, {}, (world) => world.relay.node(1).isFrozen, [false, true, true]],
  [
    "relay.hostile",
    { attack: "drop", messages: "10%" },
    { attack: "forge", messages: "10%" },
    (world) => world.relay.meddler !== null,
    [false, true, true],
  ],
];

/** What is read in the middle of each of these seconds. */
const readAt = async (faults: Fault[], seconds: number[], reading: Reading): Promise<unknown[]> => {
  const scenario: Scenario = {
    name: "faults that overlap",
    duration: "1m",
    relay: { nodes: 2 },
    devices: [{ group: "lamps", count: 1, kind: "echo" }],
    faults,
  };
  const programs = loadPrograms(scenario, ".");
  const world = new World({ scenario, plan: makePlan(scenario, 1), programs });
  const read: unknown[] = [];
  for (const second of seconds) {
    await world.play(
      (atUs) => atUs > (second + 0.5) * 1e6,
      () => true,
    );
    read.push(reading(world));
  }
  return read;
};

test.each(OVERLAPS)(
  "of two faults %s that overlap, the end of one leaves the other on",
  async (kind, one, other, reading, [none, first, second]) => {
    const during = (at: number, seconds: number, more: Partial<Fault>): Fault =>
      ({ kind, at: `${at}s`, for: `${seconds}s`, ...more }) as Fault;
    const within = [during(10, 20, one), during(15, 5, other)];
    expect(await readAt(within, [9, 12, 17, 22, 31], reading)).toEqual([
      none,
      first,
      second,
      first,
      none,
    ]);
    const crossing = [during(10, 10, one), during(15, 10, other)];
    expect(await readAt(crossing, [12, 17, 22, 26], reading)).toEqual([
      first,
      second,
      second,
      none,
    ]);
  },
);
