/** A sample report from a seed, for tests of code that reads reports. */
import { Stream } from "../base/random-streams.ts";
import { HeatMap } from "../report/heat.ts";
import { LatencyBuckets, LatencyRecorder } from "../report/latency.ts";
import type { Report } from "../report/report.ts";

/** `failed`: as if the relay had been killed during the run. */
export function sampleReport(failed: boolean): Report {
  const draws = new Stream("sample");
  const latency = new LatencyRecorder();
  const first = new LatencyRecorder();
  const buckets = new LatencyBuckets();
  const heat = new HeatMap();
  const ok = failed ? 2210 : 5000;
  for (let i = 0; i < ok; i++) {
    const isFirst = i < 1000;
    const us =
      Math.exp(
        (draws.below(1000) + draws.below(1000) + draws.below(1000)) / 900 + (isFirst ? 7.6 : 6.8),
      ) * 1.5;
    latency.record(us);
    if (isFirst) first.record(us);
    buckets.record(us, isFirst);
    heat.record(2 + (i / ok) * (failed ? 1 : 2.4), us);
  }
  const series = Array.from({ length: failed ? 32 : 45 }, (_, i) => {
    const done = Math.max(0, Math.min(ok, (i - 20) * 215 + draws.below(80)));
    const connected = Math.min(1000, Math.max(0, (i - 8) * 110));
    const dead = failed && i > 29;
    return { at_s: i / 10, connected: dead ? 0 : connected, ok: done, failed: dead ? 64 : 0 };
  });
  return {
    ok: !failed,
    stopped: failed ? "the relay ended (SIGKILL)" : null,
    seed: 1234567,
    started_at: "2026-11-21T10:00:00.000Z",
    duration_s: 4.8,
    agents: { requested: 1000, connected: 1000 },
    calls: { planned: 5000, sent: failed ? 2274 : 5000, ok, failed: 5000 - ok },
    latency_ms: latency.summary(),
    first_call_latency_ms: first.summary(),
    lateness_ms: null,
    calls_per_second: 2104,
    relay: { rss_bytes_per_agent: 9800, cpu_us_per_message: 24.1, messages: 14000 },
    simulator: { rss_bytes_per_agent: 11234 },
    thresholds: [
      { expression: "agents.online == 1000", ok: true, value: 1000 },
      { expression: "call.ok == 5000", ok: !failed, value: ok },
    ],
    kinds: ["sensor", "valve", "echo"].map((kind, i) => ({
      kind,
      agents: i === 0 ? 334 : 333,
      connected: i === 0 ? 334 : 333,
      calls: i === 0 ? 1670 : 1665,
      ok: failed ? 730 : i === 0 ? 1670 : 1665,
      latency_ms: latency.summary(),
    })),
    failures: failed
      ? [
          {
            code: "OUTCOME_UNKNOWN",
            count: 64,
            example: "the link ended while <the call> was in flight",
          },
          { code: "NOT_MADE", count: 2726, example: "the run ended before this call was made" },
        ]
      : [],
    phases: [
      { name: "night", seconds: 1.82 },
      { name: "rush", seconds: failed ? 1.1 : 2.4 },
    ],
    series,
    histogram: buckets.histogram(),
    heat: heat.result(),
    outliers: failed ? [{ device: "<pump>-00007", calls: 3, failed: 2, max_ms: 912 }] : [],
    machine: {
      cpus: 2,
      cpu_model: "AMD EPYC",
      memory_bytes: 24 * 2 ** 30,
      platform: "linux x64 6.18",
      node: "v26.10.0",
    },
    world: "live",
    crypto: "real",
    scenario: { name: "a sample", duration: "5s", devices: [] },
    programs: {},
    trace: "0123456789abcdef",
    oracles: [],
    faults: failed ? [{ kind: "net.cut", at_s: 1, until_s: 2 }] : [],
    dropped: failed ? [{ reason: "AGENT_OFFLINE", count: 12 }] : [],
    shrunk: null,
  };
}
