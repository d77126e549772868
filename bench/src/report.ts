/** The results of a benchmark, for people and for programs. */
export interface Report {
  /** Whether every figure is valid and within its limit. */
  readonly ok: boolean;
  readonly text: string;
  readonly json: object;
  /** A page with bar charts of the sections that have any. */
  readonly html?: string;
}

/** One measurement, as shown in the table, the page and the JSON. */
export interface Section {
  /** The name for `--only`. */
  readonly id: string;
  readonly title: string;
  /** What was measured, and what a figure means. */
  readonly what: string;
  readonly bars: readonly Bar[];
  /** Why these figures are void; empty if they are valid. */
  readonly voids: readonly string[];
  /** All measured figures. */
  readonly data: unknown;
}

export interface Bar {
  readonly label: string;
  readonly value: number;
  /** Quartiles, if there are any. */
  readonly lower?: number;
  readonly upper?: number;
  /** The figure for people, with its unit. */
  readonly figure: string;
  /** Further details, such as the median in microseconds. */
  readonly note: string;
  /** Our relay or SDK: all others are compared with it. */
  readonly ours: boolean;
}

/** For whoever waits. */
export function progress(what: string): void {
  process.stderr.write(`${what} ...\n`);
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
  lines.push(voided.length === 0 ? "every run is valid" : `VOID, not to be used: ${ids}`, "");
  return lines.join("\n");
}
