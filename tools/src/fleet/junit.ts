/** JUnit XML, as CI services read it: one case for each agent. */
import type { OutcomeLine } from "./outcome-line.ts";

/** Without the characters that XML 1.0 does not permit at all. */
const xmlText = (text: string): string =>
  text
    .replace(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]/g, "?")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;")
    .replaceAll("\n", "&#10;");

const caseOf = (name: string, { agent_id, outcome, error }: OutcomeLine): string => {
  const head = `    <testcase classname="${xmlText(name)}" name="${xmlText(agent_id)}" time="0"`;
  if (outcome === "ok") return `${head}/>`;
  const text = xmlText(`${outcome}: ${error ?? ""}`);
  if (outcome === "skipped") return `${head}>\n      <skipped message="${text}"/>\n    </testcase>`;
  return `${head}>\n      <failure type="${outcome}" message="${text}">${text}</failure>\n    </testcase>`;
};

/** `name`: of the suite, such as the method. */
export const renderJunit = (name: string, lines: readonly OutcomeLine[]): string => {
  const skipped = lines.filter(({ outcome }) => outcome === "skipped").length;
  const failures = lines.filter(({ outcome }) => outcome !== "ok").length - skipped;
  const counts = `tests="${lines.length}" failures="${failures}" errors="0" skipped="${skipped}"`;
  const cases = lines.map((line) => caseOf(name, line)).join("\n");
  return `<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n  <testsuite name="${xmlText(name)}" ${counts}>\n${cases}\n  </testsuite>\n</testsuites>\n`;
};
