/** What a run breaks first: an oracle, what it expects of calls, or a threshold of its own. */
import type { VirtualResult } from "../virtual/run.ts";

export interface Broken {
  /** Its name; of a threshold, `threshold`. */
  readonly oracle: string;
  /** Of a threshold, its expression. */
  readonly detail: string;
  /** Null: it is judged at the end of the run. */
  readonly atUs: number | null;
}

/**
 * Null: nothing is, or not what is `wanted`: the same oracle, and the same threshold. Nothing is
 * known of a run that was interrupted.
 */
export function brokenBy(
  { report, violation }: Pick<VirtualResult, "report" | "violation">,
  wanted?: Pick<Broken, "oracle" | "detail">,
): Broken | null {
  const all: Broken[] = [];
  if (violation !== null) all.push(violation);
  else {
    for (const { name, ok, detail } of report.oracles) {
      if (!ok) all.push({ oracle: name, detail, atUs: null });
    }
    const isWhole = report.stopped === null || report.stopped.startsWith("the threshold ");
    for (const { expression, ok, value } of isWhole ? report.thresholds : []) {
      // A metric without a value says nothing, in a smaller scenario above all.
      if (!ok && value !== null) all.push({ oracle: "threshold", detail: expression, atUs: null });
    }
  }
  const isWanted = ({ oracle, detail }: Broken): boolean =>
    wanted === undefined ||
    (oracle === wanted.oracle && whatOf(oracle, detail) === whatOf(oracle, wanted.detail));
  return all.find(isWanted) ?? null;
}

/** Which threshold is broken, how calls end, or what a program throws; nothing of other oracles. */
const whatOf = (oracle: string, detail: string): string => {
  if (oracle === "threshold") return detail;
  if (oracle === "uncaught") return detail.replace(/[0-9]+/g, "N");
  return oracle === "answers" ? (/: ([A-Z_]+)/.exec(detail)?.[1] ?? "") : "";
};
