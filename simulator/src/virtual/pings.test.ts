import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import type { Fault, Scenario } from "../scenario/schema.ts";
import { drawScenario } from "../search/draw.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

/** Resting links, and everything that may happen to one. */
const FAULTS: Fault[] = [
  { at: "4m", kind: "net.half_open", share: "20%" },
  { at: "8m", kind: "net.partition", share: "30%", for: "40s" },
  { at: "12m", kind: "net.partition", share: "30%", for: "200s" },
  { at: "18m", kind: "net.delay", latency: "900ms", jitter: "500ms", for: "3m" },
  { at: "22m", kind: "net.corrupt", messages: "50%", share: "30%", for: "4m" },
  { at: "27m", kind: "net.slow_reader", share: "20%", for: "90s" },
  { at: "30m", kind: "net.bandwidth", bandwidth: "64B/s", share: "30%", for: "2m" },
  { at: "33m", kind: "device.reboot", share: "20%" },
  { at: "36m", kind: "operator.rotate", share: "20%", for: "100s" },
  { at: "40m", kind: "net.cut", share: "40%", for: "30s" },
  { at: "42m", kind: "store.slow", latency: "20s", for: "60s" },
  { at: "42m", kind: "relay.crash", for: "10s" },
  { at: "47m", kind: "relay.hostile", attack: "reorder", messages: "30%", for: "2m" },
  { at: "51m", kind: "relay.restart" },
  { at: "54m", kind: "net.half_open", share: "40%" },
];

const resting = (network: Scenario["network"], faults = FAULTS): Scenario => ({
  name: "links that rest",
  duration: "1h",
  ...(network === undefined ? {} : { network }),
  devices: [
    { group: "idle", count: 24, kind: "echo", start: { over: "60s" }, clock: { drift_ppm: 200 } },
    { group: "asked", count: 8, kind: "sensor", start: { over: "60s" } },
  ],
  clients: [{ devices: "asked", every: "9m", presence: true }],
  faults,
  allow: [{ rate: "100%" }],
});

const traceOf = async (scenario: Scenario, seed: number, playsAllPings: boolean) => {
  const programs = loadPrograms(scenario, ".");
  const { report, world } = await runVirtual(scenario, { seed, programs, playsAllPings });
  expect(report.stopped).toBeNull();
  return { trace: report.trace, events: world.clock.played };
};

test.each([
  ["jitter", undefined],
  ["no jitter at all", { latency: "5ms", jitter: "0s" }],
  ["a long way", { latency: "600ms", jitter: "400ms" }],
] as const)(
  "pings of idle links may be omitted, with %s: the trace is the same",
  async (_, network) => {
    for (const seed of [1, 2]) {
      const scenario = resting(network);
      const [leftOut, played] = [
        await traceOf(scenario, seed, false),
        await traceOf(scenario, seed, true),
      ];
      expect(leftOut.trace).toBe(played.trace);
      // Otherwise nothing was compared.
      expect(leftOut.events).toBeLessThan(played.events - 5000);
    }
  },
);

/** `BLINDRELAY_SCENARIOS=500` compares more of them. */
const RANDOM = Number(process.env.BLINDRELAY_SCENARIOS ?? 12);
/** Before it: one with six bridges, which takes longer than all others together. */
const FIRST_SEED = 5;

test("the trace of random scenarios is the same either way", async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + RANDOM; seed++) {
    const { scenario } = checkScenario(drawScenario(seed), ".");
    const [leftOut, played] = [
      await traceOf(scenario, seed, false),
      await traceOf(scenario, seed, true),
    ];
    expect([seed, leftOut.trace]).toEqual([seed, played.trace]);
  }
});

test("a frozen relay is given up, whether pings are played or not", async () => {
  for (let atS = 10; atS < 70; atS += 3) {
    const scenario: Scenario = {
      name: "frozen",
      duration: "200s",
      relay: { nodes: 2 },
      devices: [{ group: "g", count: 2, kind: "echo" }],
      faults: [{ at: `${atS}s`, kind: "relay.freeze", node: 2, for: "110s" }],
    };
    const [leftOut, played] = [
      await traceOf(scenario, atS, false),
      await traceOf(scenario, atS, true),
    ];
    expect([atS, leftOut.trace]).toEqual([atS, played.trace]);
  }
});

test.each<[string, Partial<Scenario>, string]>([
  [
    "bit errors at a client",
    { faults: [{ at: "20s", kind: "net.corrupt", clients: "c", for: "20s", messages: "50%" }] },
    "5s",
  ],
  [
    "a second of little bandwidth",
    { faults: [{ at: "20s", kind: "net.bandwidth", for: "1100ms", bandwidth: "100B/s" }] },
    "500ms",
  ],
  [
    "bit errors in a login",
    {
      duration: "8m",
      faults: [
        { at: "20s", kind: "net.corrupt", for: "70s", messages: "50%" },
        { at: "28s", kind: "net.cut" },
      ],
    },
    "10s",
  ],
])("%s is nothing that an oracle reports", async (_, more, every) => {
  const params = { text: "z".repeat(1000) };
  const scenario: Scenario = {
    name: "no false alarm",
    duration: "4m",
    devices: [{ group: "g", count: 3, kind: "echo" }],
    clients: [{ name: "c", devices: "g", call: "echo", params, every }],
    allow: [{ rate: "100%" }],
    ...more,
  };
  for (const seed of [1, 2, 3]) await traceOf(scenario, seed, false);
});

test("one seed gives the same trace ten times in a row, in other processes too", async () => {
  const scenario = resting(undefined, FAULTS.slice(0, 3));
  const traces: string[] = [];
  for (let run = 0; run < 8; run++) {
    traces.push((await traceOf(scenario, 7, run % 2 === 1)).trace);
  }
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
  try {
    // A JSON document is also YAML.
    writeFileSync(join(folder, "resting.yaml"), JSON.stringify(scenario));
    const bin = join(import.meta.dirname, "../bin.ts");
    for (let run = 0; run < 2; run++) {
      const args = [bin, "run", join(folder, "resting.yaml"), "--seed", "7", "--json"];
      const out = execFileSync(process.execPath, args, { encoding: "utf8", stdio: "pipe" });
      traces.push(JSON.parse(out).trace);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  expect(traces).toHaveLength(10);
  expect(new Set(traces)).toHaveLength(1);
});
