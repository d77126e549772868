/** A run compared with an earlier one, as a table of the page. */
import { bytes, count, milliseconds, timestamp } from "./format.ts";
import type { Report } from "./report.ts";
import { escapeText } from "./svg.ts";

interface Figure {
  name: string;
  of: (report: Report) => number | null | undefined;
  show: (value: number) => string;
  /** Whether more is better. */
  more: boolean;
}

const percent = (share: number): string => `${(share * 100).toFixed(2)} %`;

const FIGURES: readonly Figure[] = [
  {
    name: "calls answered correctly",
    of: ({ calls }) => (calls.planned === 0 ? null : calls.ok / calls.planned),
    show: percent,
    more: true,
  },
  ...(["p50", "p95", "p99", "max"] as const).map((name) => ({
    name: `latency ${name}`,
    of: ({ latency_ms }: Report) => latency_ms?.[name],
    show: milliseconds,
    more: false,
  })),
  { name: "answers a second", of: (r) => r.calls_per_second, show: count, more: true },
  {
    name: "relay memory per agent",
    of: ({ relay }) => relay.rss_bytes_per_agent,
    show: bytes,
    more: false,
  },
  {
    name: "relay CPU per message",
    of: ({ relay }) => relay.cpu_us_per_message,
    show: (us) => `${us.toFixed(1)} µs`,
    more: false,
  },
];

/** Smaller changes are noise. */
const NOTABLE = 0.05;

export function comparison(report: Report, earlier: Report): string {
  const rows = FIGURES.flatMap(({ name, of, show, more }) => {
    const now = of(report) ?? null;
    const before = of(earlier) ?? null;
    if (now === null || before === null) return [];
    return `<tr><td>${name}</td><td>${show(now)}</td><td>${show(before)}</td><td>${change(now, before, more)}</td></tr>`;
  });
  const when = timestamp(earlier.started_at);
  const trace =
    earlier.world === "virtual" && report.trace === earlier.trace
      ? " Both runs did the same: their traces are equal."
      : "";
  return `<section>
<h2>Compared with an earlier run</h2>
<p>${escapeText(earlier.scenario.name)}, ${escapeText(when)}, seed <code>${earlier.seed}</code>.${trace}</p>
<div class="wide"><table>
<tr><th>figure</th><th>this run</th><th>earlier</th><th>change</th></tr>
${rows.join("\n")}
</table></div>
</section>`;
}

function change(now: number, before: number, more: boolean): string {
  if (before === 0) return now === 0 ? "0 %" : "";
  const by = now / before - 1;
  const text = `${by > 0 ? "+" : ""}${(by * 100).toFixed(1)} %`;
  if (Math.abs(by) < NOTABLE) return text;
  return `<span class="${by > 0 === more ? "good" : "bad"}">${text}</span>`;
}
