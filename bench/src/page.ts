/** The results as one self-contained page with bar charts, which follows the light or dark mode. */
import { escapeText, linear, type machine, STYLE } from "@blindrelay/simulator/testing";
import type { Bar, Section } from "./report.ts";

const WIDTH = 960;
const LEFT = 230;
const RIGHT = 620;
const ROW = 26;

const BARS = `
rect.ours { fill: var(--teal); } rect.other { fill: var(--blue); opacity: .55; }
line.quartiles { stroke: var(--text); stroke-width: 1.5; } svg text.label { fill: var(--text); }
p.void { color: var(--bad); font-weight: 620; } section.void svg { opacity: .45; }
`;

export interface Facts {
  readonly startedAt: Date;
  readonly machine: ReturnType<typeof machine>;
  readonly versions: Readonly<Record<string, string>>;
  /** The command that repeats the run. */
  readonly command: string;
}

export function renderPage(sections: readonly Section[], facts: Facts): string {
  const isVoid = sections.some(({ voids }) => voids.length > 0);
  const { machine, versions } = facts;
  const when = `${facts.startedAt.toISOString().slice(0, 16).replace("T", " ")} UTC`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>blindrelay: benchmark of ${when}</title>
<style>${STYLE}${BARS}</style>
</head>
<body>
<main>
<header>
<div>
<h1>What the relay costs, compared with others</h1>
<p>${when}. Short bars are good.</p>
</div>
<span class="verdict ${isVoid ? "bad" : "ok"}">${isVoid ? "Partly void" : "Valid"}</span>
</header>
${sections.map(section).join("\n")}
<section>
<h2>Machine and versions</h2>
<dl>
<dt>processor</dt><dd>${machine.cpus} × ${escapeText(machine.cpu_model)}</dd>
<dt>memory</dt><dd>${(machine.memory_bytes / 2 ** 30).toFixed(1)} GiB</dd>
<dt>system</dt><dd>${escapeText(machine.platform)}</dd>
${Object.entries(versions)
  .map(([name, version]) => `<dt>${escapeText(name)}</dt><dd>${escapeText(version)}</dd>`)
  .join("\n")}
</dl>
</section>
<footer>Again: <code>${escapeText(facts.command)}</code></footer>
</main>
</body>
</html>
`;
}

function section({ title, what, bars, voids }: Section): string {
  return `<section${voids.length === 0 ? "" : ' class="void"'}>
<h2>${escapeText(title)}</h2>
<p>${escapeText(what)}</p>
${voids.map((reason) => `<p class="void">Void: ${escapeText(reason)}</p>`).join("\n")}
${chart(title, bars)}
</section>`;
}

function chart(title: string, bars: readonly Bar[]): string {
  const most = Math.max(...bars.map(({ value, upper }) => Math.max(value, upper ?? 0)));
  const x = linear(0, most, LEFT, RIGHT);
  const rows = bars.map(({ label, value, lower, upper, figure, note, ours }, i) => {
    const top = i * ROW;
    const middle = top + ROW / 2;
    const end = x(value);
    const quartiles =
      lower === undefined || upper === undefined
        ? ""
        : `<line class="quartiles" x1="${px(x(lower))}" x2="${px(x(upper))}" y1="${middle}" y2="${middle}"/>`;
    return (
      `<text class="label" x="${LEFT - 10}" y="${middle + 4}" text-anchor="end">${escapeText(label)}</text>` +
      `<rect class="${ours ? "ours" : "other"}" x="${LEFT}" y="${top + 5}" width="${px(Math.max(1, end - LEFT))}" height="${ROW - 10}" rx="2"/>` +
      quartiles +
      `<text class="mark" x="${px(RIGHT + 10)}" y="${middle + 4}">${escapeText(figure)}<tspan class="tick" dx="10" font-weight="400">${escapeText(note)}</tspan></text>`
    );
  });
  const height = bars.length * ROW;
  return `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escapeText(title)}">${rows.join("")}</svg>`;
}

function px(value: number): string {
  return value.toFixed(1);
}
