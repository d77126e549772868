/** One run in the virtual world, from a checked scenario to its report. */

import type { Suite, X25519 } from "@blindrelay/protocol/crypto";
import type { Control, ControlParts } from "@blindrelay/relay-server/control";
import { oraclesOf } from "../oracle/names.ts";
import { makeReport } from "../report/make-report.ts";
import type { Report } from "../report/report.ts";
import { reasonToAbort, thresholdsOf } from "../report/thresholds.ts";
import { makePlan } from "../scenario/plan.ts";
import type { Scenario } from "../scenario/schema.ts";
import { type Guard, startGuard } from "./guard.ts";
import { modelSuite, modelX25519 } from "./model-suite.ts";
import type { LoadedProgram } from "./program.ts";
import { sourcesOf } from "./programs.ts";
import type { VirtualRelay } from "./relay.ts";
import { type Violation, World, type WorldOptions } from "./world.ts";

export interface RunOptions {
  seed: number;
  programs: ReadonlyMap<string, LoadedProgram>;
  /** Called occasionally with the completed share, and how the run goes. */
  progress?: (done: number, line: string) => void;
  signal?: AbortSignal;
  /** Real time after which the run is ended in any case. */
  hardStopMs?: number;
  /** The same of CPU time, which does not pass while other processes run. */
  cpuStopMs?: number;
  /** Ends the run when a program has used this much CPU time without returning. */
  stuckMs?: number;
  /** Entries of the trace that the result keeps. */
  keptEntries?: number;
  /** Also simulates the pings of idle links; the trace is the same. */
  playsAllPings?: boolean;
  /** What seals: real cryptography (the default), or a model that costs nothing. */
  crypto?: Crypto;
  /**
   * The relay's own store, in memory, with REST; the trace is the same. For one node, whose session
   * tokens live as long as a relay's.
   */
  hasRealStore?: boolean;
  /** The trace has only the lengths of messages, so it is the same with either crypto. */
  keepsTimeline?: boolean;
  /** See World. */
  watch?: WorldOptions["watch"];
  logged?: WorldOptions["logged"];
}

export type Crypto = Report["crypto"];

/** The cryptography of a world: absent is the real one. */
export const suiteOf = (crypto: Crypto = "real"): { suite?: Suite; x25519?: X25519 } =>
  crypto === "model" ? { suite: modelSuite(), x25519: modelX25519 } : {};

export interface VirtualResult {
  report: Report;
  violation: Violation | null;
  /** The program that did not return, and so ended the run; null: all did. */
  stuck: string | null;
  world: World;
}

/** Lines of the trace in the report of a run that an oracle ended. */
const LAST_EVENTS = 30;
/** Many times longer than the largest scenario takes. */
const HARD_STOP_MS = 15 * 60_000;

export async function runVirtual(scenario: Scenario, options: RunOptions): Promise<VirtualResult> {
  const guarding = startGuard([...options.programs.values()], options.stuckMs);
  try {
    return await playWorld(scenario, options, guarding);
  } finally {
    (await guarding).stop();
  }
}

/** `guarding`: may start on another core while this one makes the world. */
export async function playWorld(
  scenario: Scenario,
  options: RunOptions,
  guarding: Guard | Promise<Guard>,
): Promise<VirtualResult> {
  const result = await playOnce(scenario, options, guarding);
  const { report, violation } = result;
  if (scenario.same !== true || violation !== null || report.stopped !== null) return result;
  const { differs, stopped } = await compare(scenario, options, guarding);
  if (stopped !== null) {
    // What was not played to its end took no course that could be compared.
    return { ...result, report: { ...report, ok: false, stopped } };
  }
  const held = isPlayedWithStore(scenario) ? `${SAME}, and with the relay's own store` : SAME;
  const same = { name: "same", ok: differs === null, detail: differs ?? held };
  report.oracles.push(same);
  report.ok &&= same.ok;
  return result;
}

const SAME = "the run takes one course: twice, with every ping, and with a model of cryptography";

/** The relay's own store is for one node, and its session tokens live as long as a relay's. */
const isPlayedWithStore = ({ relay = {} }: Scenario): boolean =>
  (relay.nodes ?? 1) === 1 && relay.session_ttl === undefined;

/**
 * The way of playing the same run that took another course, or null; and why one of them ended
 * early, or null.
 */
async function compare(
  scenario: Scenario,
  { watch: _watch, logged: _logged, progress: _progress, ...options }: RunOptions,
  guarding: Guard | Promise<Guard>,
): Promise<{ differs: string | null; stopped: string | null }> {
  const ways: [Partial<RunOptions>, string][] = [
    [{}, ""],
    [{}, "the same seed took another course the second time"],
    [
      { playsAllPings: options.playsAllPings !== true },
      "with every ping played, the run takes another course",
    ],
    [{ crypto: "model" }, "with a model of cryptography, the run takes another course"],
  ];
  if (isPlayedWithStore(scenario)) {
    ways.push([{ hasRealStore: true }, "with the relay's own store, the run takes another course"]);
  }
  let first: string | null = null;
  for (const [way, differs] of ways) {
    const asked = { ...options, crypto: "real", keepsTimeline: true, ...way } as const;
    const { report, violation } = await playOnce(scenario, asked, guarding);
    const { stopped } = report;
    // What ends a course itself is a part of it; real time and interruptions are not.
    if (violation === null && stopped !== null && !stopped.startsWith("the threshold ")) {
      return { differs: null, stopped };
    }
    const course = JSON.stringify([report.trace, violation?.detail, report.failures]);
    first ??= course;
    if (course !== first) return { differs, stopped: null };
  }
  return { differs: null, stopped: null };
}

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

/** Loaded only when it is used: REST and SQL are larger than all else that a run loads. */
const openStore = async (parts: ControlParts): Promise<Control> =>
  (await import("@blindrelay/relay-server/control")).openControl(parts);

async function playOnce(
  scenario: Scenario,
  options: RunOptions,
  guarding: Guard | Promise<Guard>,
): Promise<VirtualResult> {
  const { seed, programs, signal, progress } = options;
  const startedAt = new Date();
  const startedMs = performance.now();
  const plan = makePlan(scenario, seed);
  const { keptEntries = 0, playsAllPings = false, keepsTimeline = false, crypto } = options;
  const thresholds = thresholdsOf(scenario);
  let world: World;
  const node = (): VirtualRelay => world.relay.node(1);
  const parts = {
    wallMs: () => node().wallMs(),
    steadyMs: () => node().nowMs(),
    hub: () => node().hub,
  };
  const control = options.hasRealStore ? await openStore(parts) : null;
  world = new World({
    scenario,
    plan,
    programs,
    keptEntries,
    playsAllPings,
    keepsTimeline,
    ...(options.watch === undefined ? {} : { watch: options.watch }),
    ...(options.logged === undefined ? {} : { logged: options.logged }),
    ...suiteOf(crypto),
    ...(control === null ? {} : { control }),
    stopsFor: (nowUs, measured) => reasonToAbort(thresholds, nowUs, measured),
  });
  world.measured.follow(thresholds);
  const { hardStopMs = HARD_STOP_MS, cpuStopMs = Number.POSITIVE_INFINITY } = options;
  const startedCpuMs = cpuMs();
  let stopped: string | null = null;
  const guard = await guarding;
  const playing = guard.play(world, (done) => {
    progress?.(done, world.measured.inWords());
    if (signal?.aborted) stopped = "interrupted";
    else if (performance.now() - startedMs > hardStopMs) {
      stopped = `the run took longer than ${Math.round(hardStopMs / 1000)} s of real time`;
    } else if (cpuMs() - startedCpuMs > cpuStopMs) {
      stopped = `the run took longer than ${Math.round(cpuStopMs / 1000)} s of CPU time`;
    }
    return stopped === null;
  });
  const stuck = await playing.finally(() => control?.close());
  stopped = stuck ?? world.stopped ?? stopped;
  const { violation } = world;
  if (violation !== null) stopped = `the oracle "${violation.oracle}": ${violation.detail}`;
  const connected = new Map<string, number>();
  for (const { plan: planned, online } of world.devices) {
    if (online) connected.set(planned.group, (connected.get(planned.group) ?? 0) + 1);
  }
  const report = makeReport({
    world: "virtual",
    crypto: crypto ?? "real",
    scenario,
    plan,
    thresholds,
    startedAt,
    ranS: world.clock.nowUs / 1e6,
    tookS: (performance.now() - startedMs) / 1000,
    stopped,
    measured: world.measured,
    connected,
    oracles: oraclesOf(scenario).map(([name, holds]) =>
      violation?.oracle === name
        ? { name, ok: false, detail: violation.detail }
        : { name, ok: true, detail: holds },
    ),
    relay: {
      rss_bytes_per_agent: null,
      cpu_us_per_message: null,
      messages: world.measured.counter("relay.forwarded"),
    },
    simulator: { rss_bytes_per_agent: null },
    dropped: [...(world.relay.stats()?.counters.dropped ?? [])].map(([reason, count]) => ({
      reason,
      count,
    })),
    programs: sourcesOf(scenario, programs),
    trace: world.traceLog.hash(),
  });
  if (violation !== null) report.last_events = world.lastEvents(LAST_EVENTS);
  if (world.timelines.size > 0) report.timelines = [...world.timelines.values()];
  return { report, violation, stuck, world };
}
