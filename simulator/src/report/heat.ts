/** Correct answers by time and latency, for the heat map: bounded, however long a run is. */
import type { Heat } from "./report.ts";

const ROWS_PER_DECADE = 8;
const SMALLEST_MS = 0.1;
const ROWS = ROWS_PER_DECADE * 6; // to 100 s
const MAX_COLUMNS = 120;

export class HeatMap {
  /** A power of two: when the columns run out, neighbours are merged. */
  private columnS = 1;
  private columns: number[][] = [];

  record(atS: number, us: number): void {
    while (atS >= this.columnS * MAX_COLUMNS) this.merge();
    const at = Math.max(0, Math.floor(atS / this.columnS));
    while (this.columns.length <= at) this.columns.push(new Array<number>(ROWS).fill(0));
    const column = this.columns[at] as number[];
    const row = Math.floor(Math.log10(us / 1000 / SMALLEST_MS) * ROWS_PER_DECADE);
    const place = Math.min(ROWS - 1, Math.max(0, row));
    column[place] = (column[place] as number) + 1;
  }

  /** The rows in use. */
  result(): Heat {
    const used = Array.from({ length: ROWS }, (_, row) =>
      this.columns.some((column) => (column[row] as number) > 0),
    );
    const from = used.indexOf(true);
    const to = used.lastIndexOf(true) + 1;
    if (from < 0) return { column_s: this.columnS, edges_ms: [], columns: [] };
    return {
      column_s: this.columnS,
      edges_ms: Array.from({ length: to - from + 1 }, (_, i) =>
        Number((SMALLEST_MS * 10 ** ((from + i) / ROWS_PER_DECADE)).toPrecision(3)),
      ),
      columns: this.columns.map((column) => column.slice(from, to)),
    };
  }

  private merge(): void {
    const { columns } = this;
    this.columnS *= 2;
    this.columns = columns
      .filter((_, i) => i % 2 === 0)
      .map((column, i) =>
        column.map(
          (calls, row) => calls + ((columns[2 * i + 1]?.[row] as number | undefined) ?? 0),
        ),
      );
  }
}
