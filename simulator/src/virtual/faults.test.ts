import { expect, test } from "vitest";
import { Stream } from "../base/random-streams.ts";
import { makePlan } from "../scenario/plan.ts";
import type { Fault, Scenario } from "../scenario/schema.ts";
import { VirtualBus } from "./bus.ts";
import { Clock } from "./clock.ts";
import type { Device } from "./device.ts";
import { loadPrograms } from "./programs.ts";
import { ModelStore } from "./store.ts";
import { World } from "./world.ts";

/** What a fault changes, as far as one number shows it. */
type Reading = (world: World) => unknown;

const device = ({ devices }: World): Device => devices[0] as Device;

/** Kind, fields of the first and of the second fault, and what to read. */
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
  [
    "bus.repeat",
    { messages: "50%" },
    { messages: "100%" },
    (world) => world.relay.bus?.repeats,
    [0, 2 ** 31, 2 ** 32],
  ],
  [
    "store.unsure",
    { share: "50%" },
    { share: "100%" },
    (world) => world.store.unsure,
    [0, 2 ** 31, 2 ** 32],
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

/** The readings in the middle of each of these seconds. */
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

const during = (kind: Fault["kind"], at: number, seconds: number, more: Partial<Fault>): Fault =>
  ({ kind, at: `${at}s`, for: `${seconds}s`, ...more }) as Fault;

test.each(OVERLAPS)(
  "of two overlapping faults %s, the end of one leaves the other active",
  async (kind, one, other, reading, [none, first, second]) => {
    const within = [during(kind, 10, 20, one), during(kind, 15, 5, other)];
    expect(await readAt(within, [9, 12, 17, 22, 31], reading)).toEqual([
      none,
      first,
      second,
      first,
      none,
    ]);
    const crossing = [during(kind, 10, 10, one), during(kind, 15, 10, other)];
    expect(await readAt(crossing, [12, 17, 22, 26], reading)).toEqual([
      first,
      second,
      second,
      none,
    ]);
  },
);

test("a node's wall clock jumps without affecting any other", async () => {
  const faults: Fault[] = [
    { at: "10s", kind: "relay.skew", node: 2, by: "5s" },
    { at: "20s", kind: "relay.skew", node: 2, by: "7s", back: true },
  ];
  const skews = (world: World) => world.relay.nodes.map(({ skewMs }) => skewMs);
  expect(await readAt(faults, [9, 12, 22], skews)).toEqual([
    [0, 0],
    [0, 5000],
    [0, -2000],
  ]);
});

test("what an unsure store is asked to do is done, although its answer is lost", async () => {
  const clock = new Clock();
  const watcher = {
    stored: () => {},
    requestsSaved: () => {},
    told: () => {},
    failed: () => {},
    stir: () => {},
  };
  const store = new ModelStore(clock, new Stream("store"), watcher, { latencyMs: 1 });
  const ask = async <T>(answer: Promise<T>): Promise<T | "lost"> => {
    const heard = answer.catch(() => "lost" as const);
    while (clock.nextUs() !== null) clock.step();
    return heard;
  };
  const request = { apiToken: store.accountToken("sim"), clientType: "client" as const };
  const login = await ask(store.authenticate({ ...request, address: "", nowMs: 0 }));
  const { sessionHash } = login as { sessionHash: string };
  store.unsure = 2 ** 32;
  expect(await ask(store.addRequests(new Map([[sessionHash, 10_000]])))).toBe("lost");
  store.unsure = 0;
  expect(await ask(store.reserve(sessionHash))).toBe(0);
});

test("a bus that repeats messages delivers them twice in a row", () => {
  const clock = new Clock();
  const watcher = { trace: () => {}, carried: () => {}, stir: () => {} };
  const bus = new VirtualBus(clock, new Stream("bus"), watcher);
  const run = (fn: () => void) => fn();
  const heard: string[] = [];
  bus.open("a", run).subscribe("s", ({ payload }) => heard.push(Buffer.from(payload).toString()));
  while (clock.nextUs() !== null) clock.step();
  bus.repeats = 2 ** 32;
  const from = bus.open("b", run);
  for (const text of ["one", "two"]) from.publish("s", Buffer.from(text));
  while (clock.nextUs() !== null) clock.step();
  expect(heard).toEqual(["one", "one", "two", "two"]);
});

test.each([
  ["within the other", 20, 5],
  ["crossing it", 10, 10],
])("of two rotations, one %s, each ends with the newest token", async (_, first, second) => {
  const faults = [
    during("operator.rotate", 10, first, {}),
    during("operator.rotate", 15, second, {}),
  ];
  const online = await readAt(faults, [9, 12, 17, 22, 31], (world) => device(world).online);
  expect(online).toEqual([true, false, false, true, true]);
});
