/**
 * The report's style sheet, embedded in the page: the page loads nothing, and follows the reader's
 * light or dark mode.
 */

export const STYLE = `
:root {
  color-scheme: light dark;
  --page: light-dark(#f5f6f8, #101418);
  --card: light-dark(#ffffff, #181d23);
  --edge: light-dark(#e2e5ea, #2a3139);
  --text: light-dark(#1b2129, #e6e9ed);
  --soft: light-dark(#626d7a, #94a0ad);
  --blue: light-dark(#2f6fde, #6aa0ff);
  --violet: light-dark(#9d6be0, #b994f5);
  --teal: light-dark(#0f9d8a, #3cc8b4);
  --good: light-dark(#12813f, #4cc47c);
  --good-back: light-dark(#e2f5e9, #14301f);
  --bad: light-dark(#c22f2f, #ff7b72);
  --bad-back: light-dark(#fdeaea, #3a1a1a);
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
}
main { max-width: 1080px; margin: 0 auto; padding: 36px 24px 48px; }
header { display: flex; gap: 20px; align-items: center; flex-wrap: wrap; margin-bottom: 26px; }
header > div { flex: 1 1 420px; }
h1 { font-size: 27px; line-height: 1.25; margin: 0; letter-spacing: -0.01em; font-weight: 650; }
header p { margin: 5px 0 0; color: var(--soft); }
h2 { font-size: 15px; margin: 0 0 2px; font-weight: 620; }
.verdict { font-size: 17px; font-weight: 650; padding: 9px 22px; border-radius: 999px; white-space: nowrap; }
.verdict.ok { color: var(--good); background: var(--good-back); }
.verdict.bad { color: var(--bad); background: var(--bad-back); }
.tiles { display: grid; grid-template-columns: repeat(4, 1fr); gap: 14px; margin-bottom: 14px; }
.tile, section { background: var(--card); border: 1px solid var(--edge); border-radius: 12px; }
.tile { padding: 15px 18px; }
.tile b { display: block; font-size: 25px; line-height: 1.25; font-weight: 640; letter-spacing: -0.01em; }
.tile b small { font-size: 15px; font-weight: 500; color: var(--soft); letter-spacing: 0; }
.tile span { color: var(--soft); font-size: 13.5px; }
.tile.bad b { color: var(--bad); }
section { padding: 18px 20px 16px; margin-bottom: 14px; min-width: 0; }
section > p { margin: 0 0 10px; color: var(--soft); font-size: 13.5px; }
.pair { columns: 2; column-gap: 14px; } .pair > section { break-inside: avoid; }
.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin: 0 5px 0 12px; }
.key:first-child { margin-left: 0; }
.key.later { background: var(--blue); } .key.first { background: var(--violet); }
svg { display: block; width: 100%; height: auto; overflow: visible; font-size: 12px; }
svg text { fill: var(--soft); }
svg text.mark { fill: var(--text); font-weight: 600; }
svg text.title { fill: var(--text); font-size: 13px; font-weight: 600; }
.grid { stroke: var(--edge); } .axis { stroke: var(--soft); opacity: .6; }
.mark { stroke: none; } line.mark { stroke: var(--text); stroke-dasharray: 2 3; opacity: .65; }
line.phase { stroke: var(--soft); stroke-dasharray: 1 4; opacity: .7; } line.hover { stroke: transparent; stroke-width: 12; }
rect.later { fill: var(--blue); } rect.first { fill: var(--violet); }
rect.hover { fill: transparent; } g:hover > rect.hover { fill: var(--edge); opacity: .5; }
path.line { fill: none; stroke-width: 2; stroke-linejoin: round; } path.fill { opacity: .16; stroke: none; }
path.connected { stroke: var(--teal); } path.connected.fill { fill: var(--teal); }
path.later { stroke: var(--blue); } path.later.fill { fill: var(--blue); }
path.failed { stroke: var(--bad); } path.failed.fill { fill: var(--bad); opacity: .3; }
rect.fault { fill: var(--bad); opacity: .13; } .key.fault { background: var(--bad); opacity: .3; }
path.heat { fill: var(--blue); } .heat-1 { opacity: .22; } .heat-2 { opacity: .38; } .heat-3 { opacity: .56; } .heat-4 { opacity: .77; }
.wide { overflow-x: auto; }
table { width: 100%; border-collapse: collapse; font-size: 14px; }
th { text-align: right; color: var(--soft); font-weight: 500; font-size: 13px; padding: 6px 0 6px 14px; white-space: nowrap; }
td { text-align: right; padding: 7px 0 7px 14px; border-top: 1px solid var(--edge); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; padding-left: 0; }
td.text, th.text { text-align: left; } td.text { white-space: normal; overflow-wrap: anywhere; color: var(--soft); }
code { font: 13px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace; }
.good { color: var(--good); } .bad { color: var(--bad); }
.none { color: var(--soft); padding: 10px 0; }
dl { display: grid; grid-template-columns: auto 1fr; gap: 5px 18px; margin: 6px 0 0; font-size: 14px; }
dt { color: var(--soft); } dd { margin: 0; text-align: right; overflow-wrap: anywhere; }
footer { color: var(--soft); font-size: 13.5px; margin-top: 20px; }
@media (max-width: 760px) {
  .tiles { grid-template-columns: 1fr 1fr; } .pair { columns: 1; } main { padding: 22px 14px; }
  .tile { padding: 12px 13px; } .tile b { font-size: 20px; white-space: nowrap; } .tile b small { font-size: 12px; }
  section { padding: 15px 14px 13px; overflow-x: auto; } section > svg { min-width: 640px; }
  table { font-size: 13px; } th, td { padding-left: 9px; } code.wraps { white-space: normal; overflow-wrap: anywhere; }
}
@media print { body { background: none; } section, .tile { break-inside: avoid; } }
`;
