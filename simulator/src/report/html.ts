/**
 * report.html: one self-contained page, readable offline and in mail. All text from a run is
 * escaped; the page's content policy also forbids every load and script.
 */
import { heatChart, latencyChart, timeChart } from "./charts.ts";
import { comparison } from "./comparison.ts";
import {
  bytes,
  count,
  milliseconds,
  orUnknown,
  percentiles,
  seconds,
  timestamp,
} from "./format.ts";
import type { Report, Timeline } from "./report.ts";
import { STYLE } from "./style.ts";
import { escapeText } from "./svg.ts";

/** The whole page. `command`: repeats the run; `earlier`: a report to compare with. */
export function renderHtml(report: Report, command: string, earlier?: Report): string {
  const { agents, calls } = report;
  const connectedWell = agents.connected === agents.requested;
  const calledWell = report.ok || calls.ok === calls.planned;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>blindrelay: ${report.ok ? "all right" : "failed"}, ${count(agents.requested)} agents</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<header>
<div>
<h1>${headline(report)}</h1>
<p>${escapeText(report.scenario.name)}, ${report.world} world, ${escapeText(timestamp(report.started_at))}, ${seconds(report.duration_s)} in all, seed <code>${report.seed}</code></p>
</div>
<span class="verdict ${report.ok ? "ok" : "bad"}">${report.ok ? "All right" : "Failed"}</span>
</header>
<div class="tiles">
${tile(`${count(agents.connected)} <small>of ${count(agents.requested)}</small>`, "agents connected", connectedWell)}
${tile(`${count(calls.ok)} <small>of ${count(calls.planned)}</small>`, "sealed calls answered correctly", calledWell)}
${tile(report.latency_ms === null ? "none" : milliseconds(report.latency_ms.p50), "median latency", true)}
${tile(report.latency_ms === null ? "none" : milliseconds(report.latency_ms.p99), "99th percentile", true)}
${tile(count(report.calls_per_second), "correct answers a second", true)}
${resources(report)}
</div>
<section>
<h2>Latency of correct answers</h2>
<p><i class="key later"></i>calls in an open session<i class="key first"></i>first calls, which open it: two more round trips</p>
${latencyChart(report.histogram, report.latency_ms)}
</section>
<section>
<h2>Over time</h2>
<p>${faultKey(report)}${phaseKey(report)}</p>
${timeChart(report)}
</section>
<section>
<h2>Latency over time</h2>
<p>${faultKey(report)}The stronger the colour, the more correct answers.</p>
${heatChart(report)}
</section>
${earlier === undefined ? "" : comparison(report, earlier)}
${violation(report)}
${failures(report)}
<section>
<h2>By kind of device</h2>
<div class="wide"><table>
<tr><th>kind</th><th>agents</th><th>connected</th><th>calls</th><th>correct</th><th>p50</th><th>p95</th><th>p99</th><th>max</th></tr>
${report.kinds.map((kind) => row([escapeText(kind.kind), count(kind.agents), count(kind.connected), count(kind.calls), count(kind.ok), ...percentiles(kind.latency_ms)])).join("\n")}
</table></div>
</section>
${outliers(report)}
<div class="pair">
<section>
<h2>Thresholds</h2>
<div class="wide"><table>
<tr><th>expression</th><th>value</th><th></th></tr>
${report.thresholds.map((one) => row([`<code class="wraps">${escapeText(one.expression)}</code>`, orUnknown(one.value, (value) => String(Number(value.toPrecision(6)))), verdict(one.ok)])).join("\n")}
</table></div>
</section>
${oracles(report)}
${dropped(report)}
<section>
<h2>Machine</h2>
<dl>
<dt>processor</dt><dd>${count(report.machine.cpus)} × ${escapeText(report.machine.cpu_model)}</dd>
<dt>memory</dt><dd>${bytes(report.machine.memory_bytes)}</dd>
<dt>system</dt><dd>${escapeText(report.machine.platform)}</dd>
<dt>Node</dt><dd>${escapeText(report.machine.node)}</dd>
<dt>messages forwarded</dt><dd>${orUnknown(report.relay.messages, count)}</dd>
</dl>
</section>
</div>
<footer>Every answer was opened, verified and checked by the client; the relay saw sealed packets only. Again, with the same seed: <code>${escapeText(command)}</code></footer>
</main>
</body>
</html>
`;
}

function headline(report: Report): string {
  const { agents, calls } = report;
  if (report.stopped !== null) return `Stopped: ${escapeText(report.stopped)}`;
  if (report.ok && calls.failed > 0) {
    return `${count(agents.connected)} agents, ${count(calls.ok)} of ${count(calls.planned)} sealed calls answered correctly, within the thresholds`;
  }
  if (report.ok)
    return `${count(agents.connected)} agents, ${count(calls.ok)} sealed calls, every answer correct`;
  if (calls.failed > 0) return `${count(calls.failed)} of ${count(calls.planned)} calls failed`;
  return `${count(agents.requested - agents.connected)} of ${count(agents.requested)} agents did not connect`;
}

/** The figures that the world could measure: memory and CPU only if they are real. */
function resources({ world, relay, simulator, scenario, dropped: drops }: Report): string {
  const lost = drops.reduce((sum, one) => sum + one.count, 0);
  const tiles =
    world === "virtual"
      ? [
          [escapeText(scenario.duration), "simulated"],
          [orUnknown(relay.messages, count), "messages forwarded"],
          [count(lost), "messages dropped"],
        ]
      : [
          [orUnknown(relay.rss_bytes_per_agent, bytes), "relay memory per agent"],
          [
            orUnknown(relay.cpu_us_per_message, (us) => `${us.toFixed(1)} µs`),
            "relay CPU per message",
          ],
          [orUnknown(simulator.rss_bytes_per_agent, bytes), "fleet memory per agent"],
        ];
  return tiles.map(([value, label]) => tile(value as string, label as string, true)).join("\n");
}

function failures(report: Report): string {
  if (report.failures.length === 0) return "";
  const rows = report.failures.map((failure) => {
    return `<tr><td class="bad"><code>${escapeText(failure.code)}</code></td><td>${count(failure.count)}</td><td class="text">${escapeText(failure.example)}</td></tr>`;
  });
  return `<section>
<h2>Failures by code</h2>
<div class="wide"><table>
<tr><th>code</th><th>count</th><th class="text">example</th></tr>
${rows.join("\n")}
</table></div>
${(report.timelines ?? []).map(timeline).join("\n")}
</section>`;
}

const timeline = ({ call, lines }: Timeline): string =>
  `<details><summary>the first ${escapeText(call)}</summary>
<div class="wide"><pre>${escapeText(lines.join("\n"))}</pre></div></details>`;

function faultKey({ faults }: Report): string {
  return faults.length === 0 ? "" : `<i class="key fault"></i>faults. `;
}

function phaseKey({ phases }: Report): string {
  if (phases.length < 2) return "";
  const named = phases.map(({ name, seconds: s }) => `${escapeText(name)} ${seconds(s)}`);
  return `Dotted lines mark the ends of phases: ${named.join(", ")}.`;
}

function outliers(report: Report): string {
  if (report.outliers.length === 0) return "";
  const rows = report.outliers.map(({ device, calls, failed, max_ms }) =>
    row([
      `<code>${escapeText(device)}</code>`,
      count(calls),
      failed === 0 ? "0" : `<span class="bad">${count(failed)}</span>`,
      max_ms === 0 ? "" : milliseconds(max_ms),
    ]),
  );
  return `<section>
<h2>Outliers</h2>
<p>Devices with failed calls, or with an answer far slower than the median.</p>
<div class="wide"><table>
<tr><th>device</th><th>calls</th><th>failed</th><th>slowest answer</th></tr>
${rows.join("\n")}
</table></div>
</section>`;
}

function dropped(report: Report): string {
  if (report.dropped.length === 0) return "";
  const rows = report.dropped.map(({ reason, count: times }) =>
    row([`<code>${escapeText(reason)}</code>`, count(times)]),
  );
  return `<section>
<h2>Dropped by the relay</h2>
<div class="wide"><table>
<tr><th>reason</th><th>messages</th></tr>
${rows.join("\n")}
</table></div>
</section>`;
}

function oracles(report: Report): string {
  const rows = report.oracles.map(
    ({ name, ok, detail }) =>
      `<tr><td><code>${escapeText(name)}</code></td><td>${verdict(ok)}</td><td class="text">${escapeText(detail.slice(0, 500))}</td></tr>`,
  );
  return `<section>
<h2>Oracles</h2>
<div class="wide"><table>
<tr><th>oracle</th><th></th><th class="text">checks</th></tr>
${rows.join("\n")}
</table></div>
</section>`;
}

/** The smallest scenario found that breaks the same oracle, and the end of its trace. */
function violation({ shrunk }: Report): string {
  if (shrunk === null) return "";
  return `<section>
<h2>Smallest scenario</h2>
<p>${escapeText(shrunk.detail)}</p>
<div class="wide"><pre>${escapeText(JSON.stringify(shrunk.scenario, null, 1).slice(0, 5_000))}</pre></div>
<div class="wide"><pre>${shrunk.lines.map(escapeText).join("\n")}</pre></div>
</section>`;
}

function tile(value: string, label: string, well: boolean): string {
  return `<div class="tile${well ? "" : " bad"}"><b>${value}</b><span>${label}</span></div>`;
}

function verdict(ok: boolean): string {
  return ok ? `<span class="good">ok</span>` : `<span class="bad">missed</span>`;
}

function row(cells: string[]): string {
  return `<tr>${cells.map((cell) => `<td>${cell}</td>`).join("")}</tr>`;
}
