/**
 * JUnit XML, as CI services read it: one suite for each run, one case for each threshold and
 * oracle.
 */
import type { Report } from "./report.ts";

/** `missing`: what there should be too, which is a failure; null: nothing. */
export function renderJunit(reports: readonly Report[], missing: string | null = null): string {
  const suites = reports.map(suite);
  if (missing !== null) {
    const whole = testCase("shards", "are all there", false, missing);
    const counts = 'tests="1" failures="1" errors="0" skipped="0" time="0"';
    suites.push(`  <testsuite name="shards" ${counts}>\n${whole}\n  </testsuite>`);
  }
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n${suites.join("\n")}\n</testsuites>\n`;
}

function suite(report: Report): string {
  const { scenario, seed, duration_s, stopped } = report;
  const cases = [
    ...report.thresholds.map(({ expression, ok, value }) =>
      testCase("threshold", expression, ok, `came to ${value ?? "nothing"}`),
    ),
    ...report.oracles.map(({ name, ok, detail }) => testCase("oracle", name, ok, detail)),
    testCase("run", "came to its end", stopped === null, stopped ?? ""),
  ];
  const failures = cases.filter((text) => text.includes("<failure")).length;
  const name = `${scenario.name}, seed ${seed}`;
  return `  <testsuite name="${xmlText(name)}" tests="${cases.length}" failures="${failures}" errors="0" skipped="0" time="${duration_s}" timestamp="${report.started_at}">\n${cases.join("\n")}\n  </testsuite>`;
}

function testCase(kind: string, name: string, ok: boolean, detail: string): string {
  const head = `    <testcase classname="${kind}" name="${xmlText(name)}" time="0"`;
  if (ok) return `${head}/>`;
  const text = xmlText(detail);
  return `${head}>\n      <failure message="${text}">${text}</failure>\n    </testcase>`;
}

/** Also omits the characters that XML 1.0 does not permit at all. */
function xmlText(text: string): string {
  return text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, "?")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("\n", "&#10;");
}
