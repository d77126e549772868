/**
 * The whole benchmark, section by section: which contenders run, what is measured, and how it is
 * shown. Everything that it starts and writes is removed at its end.
 */
import { mkdtempDisposable } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { measureConnecting } from "./connecting.ts";
import { bareWs, brokers, type Contender, ourRelay } from "./contenders.ts";
import { type Effort, measureForwarding, type Rig } from "./forwarding.ts";
import { Generator } from "./generator/client.ts";
import { type GrowthLevel, measureGrowth } from "./growth.ts";
import { type Comparison, isBound, percent } from "./interleave.ts";
import { FIT_LEAST, isLine, type MemoryResult, measureMemory } from "./memory.ts";
import { measurePackets, SIZES, VERSIONS } from "./packets.ts";
import { type Bar, progress, type Section } from "./report.ts";
import { describeScenario, SCENARIOS, SERVER_IDS } from "./sections.ts";
import { measureSerial, type SerialResult } from "./serial.ts";
import { canMeasure } from "./usage.ts";
import { measureWorld, type WorldResult } from "./world.ts";

const FOLDER = join(tmpdir(), "blindrelay-bench-");

export interface Plan {
  /** From sections.ts; empty: all. */
  readonly only: readonly string[];
  /** Seconds, to check that it works: far too short for figures. */
  readonly quick: boolean;
  readonly cycles: number;
}

interface Results {
  readonly sections: readonly Section[];
  readonly skipped: readonly string[];
  readonly versions: Readonly<Record<string, string>>;
}

const WHOLE = {
  sliceMs: 100,
  warmUp: 40,
  share: 1,
  levels: [100, 1_000, 10_000],
  idle: 10_000,
  waves: 5,
  settleMs: 500,
  sizes: SIZES,
  worlds: 3,
  serial: { cycles: 10, loadMs: 2_000 },
};
const QUICK: typeof WHOLE = {
  sliceMs: 40,
  warmUp: 1,
  share: 0.05,
  levels: [10, 30],
  idle: 60,
  waves: 3,
  settleMs: 50,
  sizes: [256],
  worlds: 1,
  serial: { cycles: 1, loadMs: 100 },
};

/** Rejects if a contender fails, or when `signal` aborts. */
export async function measureSpeed(plan: Plan, signal: AbortSignal): Promise<Results> {
  if (!canMeasure()) throw new Error("the benchmark reads /proc: it runs on Linux only");
  const wants = (id: string): boolean => plan.only.length === 0 || plan.only.includes(id);
  const bounds = plan.quick ? QUICK : WHOLE;
  const effort: Effort = { ...bounds, cycles: plan.cycles };
  const sections: Section[] = [];
  const run = async (id: string, measure: () => Promise<Section | Section[]>): Promise<void> => {
    if (!wants(id)) return;
    signal.throwIfAborted();
    progress(id);
    try {
      sections.push(...[await measure()].flat());
    } catch (error) {
      signal.throwIfAborted();
      sections.push(failed(id, error as Error));
    }
  };

  // Without running servers, which would disturb.
  await run("packets", () => packets(bounds.sizes, effort));
  await run("world", async () => world(await measureWorld(bounds.worlds)));
  const skipped = new Set<string>();
  const versions: Record<string, string> = { Node: process.version };
  await run("serial", async () => {
    await using folder = await mkdtempDisposable(FOLDER);
    const result = await measureSerial(bounds.serial, folder.path, signal);
    for (const what of result.skipped) skipped.add(what);
    Object.assign(versions, result.versions);
    return serial(result);
  });
  const withServers = async (ids: readonly string[], use: (rig: Rig) => Promise<void>) => {
    if (!ids.some(wants)) return;
    await using servers = await startServers(signal);
    for (const what of servers.skipped) skipped.add(what);
    for (const { name, version } of servers.rig.contenders) versions[name] = version;
    await use(servers.rig);
  };
  // With fresh servers: they would reuse memory that other sections have freed.
  await withServers(["memory"], (rig) => run("memory", () => memories(rig, bounds, signal)));
  const busy = SERVER_IDS.filter((id) => id !== "memory");
  await withServers(busy, (rig) => measureBusy(run, rig, bounds, effort));
  return { sections, skipped: [...skipped], versions };
}

type Bounds = typeof WHOLE;
type Run = (id: string, measure: () => Promise<Section | Section[]>) => Promise<void>;

async function memories(rig: Rig, bounds: Bounds, signal: AbortSignal): Promise<Section> {
  const results: MemoryResult[] = [];
  for (const contender of rig.contenders) {
    if (contender === rig.contenders[1]) continue; // the twin adds no information
    signal.throwIfAborted();
    progress(`memory of ${contender.name}`);
    results.push(await measureMemory(rig.generator, contender, bounds));
  }
  return memory(results);
}

async function measureBusy(run: Run, rig: Rig, bounds: Bounds, effort: Effort): Promise<void> {
  for (const scenario of SCENARIOS) {
    await run(scenario.name, async () => {
      const comparison = await measureForwarding(rig, scenario, effort);
      const what = `${describeScenario(scenario)}. ${PER_MESSAGE}`;
      return compared(scenario.name, `Forwarding: ${scenario.name}`, what, comparison);
    });
  }
  await run("connect", async () => {
    const comparison = await measureConnecting(rig, effort);
    return compared("connect", "Accepting a connection", PER_CONNECTION, comparison);
  });
  await run("growth", async () => {
    const ours: Rig = { ...rig, contenders: rig.contenders.slice(0, 3) };
    const onLevel = (level: number): void => progress(`growth, ${level} connected`);
    return growth(await measureGrowth(ours, bounds.levels, effort, onLevel));
  });
}

const PER_MESSAGE =
  "Server CPU for one forwarded message, as a ratio to a minimal forwarder on ws; quartiles in brackets.";
const PER_CONNECTION =
  "Server CPU for one accepted agent: TCP, upgrade, and auth with its token checked (ours) or just the upgrade and a hello.";

interface Servers extends AsyncDisposable {
  readonly rig: Rig;
  readonly skipped: readonly string[];
}

async function startServers(signal: AbortSignal): Promise<Servers> {
  const folder = await mkdtempDisposable(FOLDER);
  const contenders: Contender[] = [];
  const generator = new Generator();
  let stopping: Promise<void> | null = null;
  const stop = (): Promise<void> => {
    stopping ??= Promise.all([generator.stop(), ...contenders.map((one) => one.stop())]).then(() =>
      folder.remove(),
    );
    return stopping;
  };
  // Pending operations then fail, and the run with them.
  signal.addEventListener("abort", () => void stop(), { once: true });
  try {
    progress("starting servers");
    contenders.push(await bareWs("bare ws"), await bareWs("bare ws again"));
    const onMade = (made: number): void => {
      if (made % 1_000 === 0) progress(`${made} agents made`);
    };
    contenders.push(await ourRelay(join(folder.path, "relay"), onMade));
    const others = await brokers(folder.path);
    contenders.push(...others.contenders);
    signal.throwIfAborted();
    const { skipped } = others;
    return { rig: { generator, contenders }, skipped, [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Earlier and later measurements remain valid. */
function failed(id: string, { message }: Error): Section {
  const what = "Not completed.";
  return { id, title: id, what, bars: [], voids: [`it failed: ${message}`], data: null };
}

const OURS = ["blindrelay", "node", "noble"];

function compared(id: string, title: string, what: string, comparison: Comparison): Section {
  const bars = comparison.standings.map((standing): Bar => {
    const { name, ratio, lower, upper, us, generator } = standing;
    const share = generator === 0 ? "" : `, generator ${percent(generator)}`;
    const bound = isBound(standing) ? " (it is the bottleneck: an upper limit)" : "";
    return {
      label: name,
      value: ratio,
      lower,
      upper,
      figure: ratio.toFixed(2),
      note: `[${lower.toFixed(2)}-${upper.toFixed(2)}]  ${us.toFixed(1)} us${share}${bound}`,
      ours: OURS.includes(name),
    };
  });
  return { id, title, what, bars, voids: comparison.voids, data: comparison };
}

function growth(levels: readonly GrowthLevel[]): Section {
  const ratios = levels.map(({ comparison }) => comparison.standings[2]?.ratio ?? Number.NaN);
  const bars = levels.map(({ connected, comparison, scrapeMs }, i): Bar => {
    const { ratio = Number.NaN, us = Number.NaN } = comparison.standings[2] ?? {};
    const growth = ratio / (ratios[0] as number);
    return {
      label: `${connected} connected`,
      value: ratio,
      figure: ratio.toFixed(2),
      note: `${us.toFixed(1)} us${i === 0 ? "" : `, ${growth.toFixed(2)} times the first`}, scrape ${scrapeMs.toFixed(1)} ms`,
      ours: true,
    };
  });
  return {
    id: "growth",
    title: "c1 with many agents connected",
    what: "As c1, against a yardstick without other connections, and the relay's CPU for a scrape of its metrics.",
    bars,
    voids: levels.flatMap(({ connected, comparison }) =>
      comparison.voids.map((reason) => `at ${connected}: ${reason}`),
    ),
    data: levels,
  };
}

function memory(results: readonly MemoryResult[]): Section {
  return {
    id: "memory",
    title: "Memory of an idle connection",
    what: "Slope of the server's anonymous resident memory over waves of connections.",
    bars: results.map(({ name, slope, fit, points, liveHeap }) => ({
      label: name,
      value: Math.max(0, slope),
      figure: `${(slope / 1024).toFixed(1)} KiB`,
      note:
        `up to ${points.at(-1)?.connections}, R2 ${fit.toFixed(3)}${fit < FIT_LEAST ? " (no line)" : ""}` +
        (liveHeap === null ? "" : `, live heap ${(liveHeap / 1024).toFixed(1)} KiB`),
      ours: OURS.includes(name),
    })),
    // Bars for the yardstick and the relay; the others are in the table.
    voids: results
      .slice(0, 2)
      .filter((result) => !isLine(result))
      .map(({ name }) => `the memory of ${name} does not grow linearly`),
    data: results,
  };
}

async function packets(sizes: readonly number[], effort: Effort): Promise<Section[]> {
  const sections: Section[] = [];
  for (const v of VERSIONS) {
    for (const bytes of sizes) {
      const comparison = await measurePackets(v, bytes, { ...effort, sliceMs: PACKET_SLICE_MS });
      const title = `Sealing and opening ${bytes} bytes, suite "${v}"`;
      sections.push(compared("packets", title, PER_PACKET, comparison));
    }
  }
  return sections;
}

const PACKET_SLICE_MS = 40;
const PER_PACKET =
  "CPU for one packet sealed, read and opened, as a ratio to node's bare cipher for the same data; quartiles in brackets.";

/** What the parts together may take of a core at 1 Mbaud in both directions. */
const MOST_CPU_SHARE = 0.15;

function serial(result: SerialResult): Section {
  const [ours] = result.standings;
  const isOver = ours !== undefined && ours.cpuShare > MOST_CPU_SHARE;
  return {
    id: "serial",
    title: "A serial port over the network",
    what: "Share of a core at 1 Mbaud in both directions, without the relay's; and a byte's round trip.",
    bars: result.standings.map(({ name, cpuShare, roundTripMs }, at) => ({
      label: name,
      value: cpuShare,
      figure: percent(cpuShare),
      note: `${roundTripMs.toFixed(1)} ms for one byte there and back`,
      ours: at === 0,
    })),
    voids: isOver ? [`bridge and attach take more than ${percent(MOST_CPU_SHARE)} of a core`] : [],
    data: result,
  };
}

function world(result: WorldResult): Section {
  const { scenario, devices, virtualSeconds, cpuSeconds, calls, voids } = result;
  return {
    id: "world",
    title: "The virtual world",
    what: `CPU of blindrelay-sim for "${scenario}": ${devices} devices, ${calls} sealed calls.`,
    bars: [
      {
        label: `${virtualSeconds} virtual seconds`,
        value: cpuSeconds,
        figure: `${cpuSeconds.toFixed(1)} s`,
        note: `${Math.round(virtualSeconds / cpuSeconds)} times as fast as time`,
        ours: true,
      },
    ],
    voids,
    data: result,
  };
}
