import { describe, expect, test } from "vitest";
import { parseThreshold } from "../scenario/thresholds.ts";
import { sampleReport } from "../testing/sample.ts";
import { bytes, milliseconds, seconds } from "./format.ts";
import { renderHtml } from "./html.ts";
import { LatencyBuckets, LatencyRecorder } from "./latency.ts";
import type { Report } from "./report.ts";
import { linear, logarithmic, logTicks, ticks } from "./svg.ts";
import { renderTable } from "./table.ts";

const COMMAND = "npm start -- --seed 1";

/** A run that ended before anything was measured. */
function emptyReport(): Report {
  return {
    ...sampleReport(true),
    agents: { requested: 3, connected: 0 },
    latency_ms: null,
    first_call_latency_ms: null,
    relay: { rss_bytes_per_agent: null, cpu_us_per_message: null, messages: null },
    simulator: { rss_bytes_per_agent: null },
    kinds: [{ kind: "echo", agents: 0, connected: 0, calls: 0, ok: 0, latency_ms: null }],
    phases: [],
    series: [],
    histogram: { edges_ms: [], first: [], later: [] },
    heat: { column_s: 1, edges_ms: [], columns: [] },
    outliers: [],
  };
}

describe("the page", () => {
  test.each([
    ["good", sampleReport(false)],
    ["failed", sampleReport(true)],
    ["empty", emptyReport()],
  ])("of a %s run loads nothing and contains no NaN", (_, report) => {
    const page = renderHtml(report, COMMAND);
    expect(page).not.toMatch(/https?:|src=|href=|@import|url\(/);
    expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'"`);
    expect(page).not.toMatch(/NaN|Infinity|undefined|\[object/);
  });

  test("has a band for each fault in both charts over time", () => {
    const page = renderHtml(sampleReport(true), COMMAND);
    expect(page.match(/<rect class="fault"/g)).toHaveLength(3);
    expect(page).toContain("<title>net.cut at 1.00 s until 2.00 s</title>");
    expect(renderHtml(sampleReport(false), COMMAND)).not.toContain('class="fault"');
  });

  test("names the outliers, and what the relay dropped", () => {
    const page = renderHtml(sampleReport(true), COMMAND);
    expect(page).toContain("<code>&#60;pump&#62;-00007</code></td><td>3</td>");
    expect(page).toContain("<code>AGENT_OFFLINE</code></td><td>12</td>");
    expect(renderHtml(sampleReport(false), COMMAND)).not.toContain("Outliers");
  });

  test("compares with an earlier run, better or worse as each figure defines it", () => {
    const earlier = { ...sampleReport(false), seed: 3, calls_per_second: 1052 };
    const now = { ...sampleReport(true), seed: 4 };
    const page = renderHtml(now, COMMAND, earlier);
    expect(page).toContain("seed <code>3</code>");
    expect(page).toContain(
      '<td>answers a second</td><td>2,104</td><td>1,052</td><td><span class="good">+100.0 %</span>',
    );
    expect(page).toContain('<td>44.20 %</td><td>100.00 %</td><td><span class="bad">-55.8 %</span>');
    expect(renderHtml(now, COMMAND)).not.toContain("Compared");
  });

  test("reports success", () => {
    const page = renderHtml(sampleReport(false), COMMAND);
    expect(page).toContain("1,000 agents, 5,000 sealed calls, every answer correct");
    expect(page).toContain("All right");
    expect(page).not.toContain("Failures by code");
  });

  test("marks no figure within the thresholds as bad, and does not name a single phase", () => {
    const good = sampleReport(false);
    const calls = { ...good.calls, ok: 4_990, failed: 10 };
    const page = renderHtml({ ...good, calls, phases: [{ name: "run", seconds: 9 }] }, COMMAND);
    expect(page).toContain("4,990 of 5,000 sealed calls answered correctly, within the thresholds");
    expect(page).not.toMatch(/class="tile bad"|end a phase/);
  });

  test("reports failures by code", () => {
    const page = renderHtml(sampleReport(true), COMMAND);
    expect(page).toContain("Stopped: the relay ended (SIGKILL)");
    expect(page).toContain("OUTCOME_UNKNOWN");
    expect(page).toContain("missed");
  });

  test("escapes text from a run, whatever is in it", () => {
    const evil = `"><script>alert('1')</script>&`;
    const page = renderHtml(
      {
        ...sampleReport(true),
        stopped: evil,
        failures: [{ code: evil, count: 1, example: evil }],
        phases: [{ name: evil, seconds: 1 }],
        thresholds: [{ expression: evil, ok: false, value: null }],
      },
      evil,
    );
    expect(page).not.toContain("<script");
    expect(page).toContain("&#60;script&#62;alert(&#39;1&#39;)");
  });
});

describe("the table", () => {
  test("aligns its columns and ends with the verdict", () => {
    const table = renderTable(sampleReport(false), "report/report.html");
    expect(table).toContain("agents   1,000 of 1,000 connected");
    expect(table).toContain("calls    5,000 of 5,000 right");
    expect(table.trimEnd().split("\n").at(-1)).toBe("All right, in 4.80 s.");
  });

  test("fits a terminal of 80 columns, whatever is measured", () => {
    const sample = sampleReport(false);
    const slow = { p50: 12_345, p95: 23_456, p99: 34_567, max: 45_678 };
    const large: Report = {
      ...sample,
      agents: { requested: 19_000, connected: 19_000 },
      calls: { ...sample.calls, planned: 19_000_000, sent: 19_000_000, ok: 19_000_000 },
      calls_per_second: 12_345,
      latency_ms: { ...sample.latency_ms, ...slow },
      trace: "0123456789abcdef".repeat(4),
      kinds: sample.kinds.map((kind) => ({
        ...kind,
        latency_ms: { ...sample.latency_ms, ...slow },
      })),
    };
    for (const report of [sample, large]) {
      const [table] = renderTable(report, "report/report.html").split("\nthresholds\n");
      for (const line of (table as string).split("\n")) expect(line.length, line).toBeLessThan(81);
    }
  });

  test("reports what failed and why", () => {
    const table = renderTable(sampleReport(true), "report/report.html");
    expect(table).toMatch(/OUTCOME_UNKNOWN +64 +the link ended/);
    expect(table).toContain("FAILED: the relay ended (SIGKILL), after 4.80 s.");
    expect(renderTable(emptyReport(), "x")).not.toMatch(/NaN|undefined|null/);
  });
});

describe("latencies", () => {
  test("are summarized within a thousandth", () => {
    const recorder = new LatencyRecorder();
    expect(recorder.summary()).toBeNull();
    for (let us = 1000; us <= 100_000; us += 1000) recorder.record(us);
    const summary = recorder.summary();
    for (const [name, ms] of Object.entries({ p50: 50, p95: 95, p99: 99, max: 100 })) {
      expect(Math.abs((summary?.[name as "p50"] ?? 0) / ms - 1)).toBeLessThan(0.002);
    }
  });

  test("are all in the chart, first calls apart, extremes in the outermost buckets", () => {
    const buckets = new LatencyBuckets();
    expect(buckets.histogram()).toEqual({ edges_ms: [], first: [], later: [] });
    for (const us of [0, 150, 900, 5000, 5000, 1e12]) buckets.record(us, us === 5000);
    const { edges_ms, first, later } = buckets.histogram();
    expect(first.reduce((a, b) => a + b)).toBe(2);
    expect(later.reduce((a, b) => a + b)).toBe(4);
    expect(edges_ms).toHaveLength(first.length + 1);
    expect(edges_ms[0]).toBe(0.1);
    const bucket = first.indexOf(2);
    expect(edges_ms[bucket]).toBeLessThanOrEqual(5);
    expect(edges_ms[bucket + 1]).toBeGreaterThan(5);
  });
});

test("scales and ticks", () => {
  expect(linear(0, 10, 100, 200)(5)).toBe(150);
  expect(linear(3, 3, 100, 200)(3)).toBe(100);
  expect(logarithmic(1, 100, 0, 10)(10)).toBe(5);
  expect(ticks(0, 4)).toEqual([0]);
  expect(ticks(703, 4)).toEqual([0, 200, 400, 600, 800]);
  expect(ticks(0.3, 3)).toEqual([0, 0.1, 0.2, 0.3]);
  expect(logTicks(0.4, 12)).toEqual([0.5, 1, 2, 5, 10]);
});

test("numbers for people", () => {
  expect([0.123, 9.96, 12.34, 450.4, 1234].map(milliseconds)).toEqual([
    "0.12 ms",
    "9.96 ms",
    "12.3 ms",
    "450 ms",
    "1.23 s",
  ]);
  expect([0.5, 12.34, 95.2].map(seconds)).toEqual(["0.50 s", "12.3 s", "95 s"]);
  expect([12, 1023.4, 4710, 2 ** 30].map(bytes)).toEqual(["12 B", "1023 B", "4.6 KB", "1.0 GB"]);
});

test("no percentile is beyond the longest call, and a share in percent is exact", () => {
  const recorder = new LatencyRecorder();
  for (let n = 0; n < 10; n++) recorder.record(30_000_000);
  expect(recorder.summary()).toEqual({ p50: 30_000, p95: 30_000, p99: 30_000, max: 30_000 });
  expect(recorder.trend()?.percentile(99)).toBe(30_000);
  expect(parseThreshold("rate(call.ok) >= 99.9%")).toMatchObject({ limit: 0.999 });
});
