/** The results of a benchmark, for people and for programs. */
export interface Report {
  /** Whether every figure is valid and within its limit. */
  readonly ok: boolean;
  readonly text: string;
  readonly json: object;
  /** A page with bars, of what has any. */
  readonly html?: string;
}

/** One thing that was measured, as the table, the page and the JSON have it. */
export interface Section {
  /** As `--only` names it. */
  readonly id: string;
  readonly title: string;
  /** What was done, and what a figure means. */
  readonly what: string;
  readonly bars: readonly Bar[];
  /** Why these figures say nothing; empty if they are good. */
  readonly voids: readonly string[];
  /** All that was measured. */
  readonly data: unknown;
}

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Quartiles, where there are any. */
  readonly lower?: number;
  readonly upper?: number;
  /** The figure for people, with its unit. */
  readonly figure: string;
  /** What else is known, such as the median in microseconds. */
  readonly note: string;
  /** Of the relay or the SDK: all the others are compared with it. */
  readonly ours: boolean;
}

const LABEL = 30;

export function renderText(sections: readonly Section[], skipped: readonly string[]): string {
  const lines: string[] = [];
  for (const { title, what, bars, voids } of sections) {
    lines.push(title, `  ${what}`);
    for (const { label, figure, note } of bars) {
      lines.push(`  ${label.padEnd(LABEL)} ${figure.padStart(10)}   ${note}`.trimEnd());
    }
    lines.push(...voids.map((reason) => `  VOID: ${reason}`), "");
  }
  lines.push(...skipped.map((what) => `SKIPPED  ${what}`));
  const voided = sections.filter(({ voids }) => voids.length > 0);
  const ids = voided.map(({ id }) => id).join(", ");
  lines.push(voided.length === 0 ? "every run is valid" : `VOID, so without meaning: ${ids}`, "");
  return lines.join("\n");
}
