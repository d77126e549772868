/** What is broken, as lines that GitHub shows as annotations of a workflow's run. */
import type { Report } from "./report.ts";

/** None for a run that is all right. */
export function annotationsOf(report: Report): string[] {
  const { scenario, seed, stopped, oracles, thresholds } = report;
  const title = `${scenario.name}, seed ${seed}`;
  const broken = [
    ...(stopped === null ? [] : [stopped]),
    ...oracles.filter(({ ok }) => !ok).map(({ name, detail }) => `${name}: ${detail}`),
    ...thresholds
      .filter(({ ok }) => !ok)
      .map(({ expression, value }) => `${expression} came to ${value ?? "nothing"}`),
  ];
  return broken.map((text) => `::error title=${property(title)}::${data(text)}`);
}

/** As GitHub's own toolkit escapes them. */
const data = (text: string): string =>
  text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A");
const property = (text: string): string => data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
