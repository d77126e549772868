/** Makes the report of `npm start` from the results of its run. */
import { createHash } from "node:crypto";
import type { Role } from "../devices/kinds.ts";
import type { FleetReport } from "../live/fleet-child.ts";
import { missingDevices } from "../live/missing.ts";
import { machine } from "../report/machine.ts";
import type { FailureCount, JudgedThreshold, KindResult, Report } from "../report/report.ts";
import type { Tally } from "../report/tally.ts";
import type { Timeline } from "../report/timeline.ts";
import type { AskedCall } from "../scenario/from-flags.ts";
import type { Scenario } from "../scenario/schema.ts";
import { KIND_NAMES } from "../scenario/schema.ts";

/** The requested run. */
export interface RunSettings {
  agents: number;
  callsPerAgent: number;
  reportDir: string;
  seed: number;
  json: boolean;
  /** A device program instead of the bundled ones. */
  program: string | null;
  /** The calls to it, in turn. */
  calls: AskedCall[];
}

export interface Findings {
  flags: RunSettings;
  /** Why the run ended early, or null. */
  stopped: string | null;
  startedAt: Date;
  timeline: Timeline;
  tally: Tally;
  /** The agents that were created. */
  agents: readonly { id: string; kind: number }[];
  roles: readonly Role[];
  /** The fleet's report when connecting ended; null if it did not get that far. */
  fleet: FleetReport | null;
  relayRssBytesPerAgent: number | null;
  relayCpuUsPerMessage: number | null;
  relayMessages: number | null;
}

export function buildReport(findings: Findings): Report {
  const { flags, tally, timeline, fleet } = findings;
  const planned = flags.agents * flags.callsPerAgent;
  const connected = fleet?.connected ?? 0;
  const calls = { planned, sent: tally.sent, ok: tally.ok, failed: planned - tally.ok };
  const callSeconds = timeline.secondsOf("calling");
  const thresholds = [
    equals("agents.connected", connected, flags.agents),
    equals("calls.ok", calls.ok, planned),
    equals("calls.failed", calls.failed, 0),
  ];
  return {
    ok: findings.stopped === null && thresholds.every((threshold) => threshold.ok),
    stopped: findings.stopped,
    seed: flags.seed,
    started_at: findings.startedAt.toISOString(),
    duration_s: timeline.elapsed(),
    agents: { requested: flags.agents, connected },
    calls,
    latency_ms: tally.all.summary(),
    first_call_latency_ms: tally.first.summary(),
    calls_per_second: callSeconds === 0 ? 0 : Number((tally.ok / callSeconds).toFixed(1)),
    relay: {
      rss_bytes_per_agent: findings.relayRssBytesPerAgent,
      cpu_us_per_message: findings.relayCpuUsPerMessage,
      messages: findings.relayMessages,
    },
    simulator: { rss_bytes_per_agent: fleet?.rssBytesPerAgent ?? null },
    thresholds,
    kinds: kindResults(findings),
    failures: [
      ...missingDevices(fleet?.missing ?? []),
      ...tally.failures(),
      ...neverSent(findings),
    ],
    phases: timeline.phases,
    series: timeline.series(),
    histogram: tally.histogram(),
    heat: tally.heat(),
    outliers: tally.outliers(),
    machine: machine(),
    world: "live",
    scenario: demonstration(flags),
    programs: {},
    trace: createHash("sha256")
      .update(JSON.stringify([demonstration(flags), flags.seed]))
      .digest("hex")
      .slice(0, 16),
    oracles: [
      {
        name: "answers",
        ok: !tally.failures().some(({ code }) => code === "WRONG_ANSWER"),
        detail: "every answer was opened, verified, and checked against its question",
      },
    ],
    faults: [],
    dropped: [],
    shrunk: null,
  };
}

/** What `npm start` does, as a scenario. */
function demonstration({ agents, program, calls }: RunSettings): Scenario {
  const devices =
    program === null
      ? KIND_NAMES.map((kind, i) => ({ group: kind, count: Math.ceil((agents - i) / 3), kind }))
      : [{ group: "agent", count: agents, program }];
  const clients = calls.map(({ method, params }) => ({
    devices: "agent",
    call: method,
    ...(params === undefined ? {} : { params }),
  }));
  return {
    name: "npm start",
    duration: "1m",
    world: "live",
    devices: devices.filter(({ count }) => count > 0),
    clients,
  };
}

function equals(name: string, value: number, wanted: number): JudgedThreshold {
  return { expression: `${name} == ${wanted}`, ok: value === wanted, value };
}

function kindResults({ agents, fleet, tally, roles }: Findings): KindResult[] {
  const missing = new Set(fleet?.missing.map((agent) => agent.id));
  return roles.map(({ name }, kind) => {
    const ofKind = agents.filter((agent) => agent.kind === kind);
    const calls = tally.kind(name);
    return {
      kind: name,
      agents: ofKind.length,
      connected: fleet === null ? 0 : ofKind.filter((agent) => !missing.has(agent.id)).length,
      calls: calls.calls,
      ok: calls.ok,
      latency_ms: calls.latency.summary(),
    };
  });
}

/** Planned calls that were not made, because the run ended first. */
function neverSent({ flags, tally }: Findings): FailureCount[] {
  const count = flags.agents * flags.callsPerAgent - tally.ok - tally.failed;
  if (count === 0) return [];
  return [{ code: "NOT_SENT", count, example: "the run ended before this call was made" }];
}
