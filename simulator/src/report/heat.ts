/** Correct answers by time and latency, for the heat map: bounded, however long a run is. */
import { LogScale } from "./latency.ts";
import type { Heat } from "./report.ts";

const SCALE = new LogScale(8);
const MAX_COLUMNS = 120;

export class HeatMap {
  /** A power of two: when the columns run out, neighbours are merged. */
  private columnS = 1;
  private columns: number[][] = [];

  record(atS: number, us: number): void {
    while (atS >= this.columnS * MAX_COLUMNS) this.merge();
    const at = Math.max(0, Math.floor(atS / this.columnS));
    while (this.columns.length <= at) this.columns.push(new Array<number>(SCALE.size).fill(0));
    const column = this.columns[at] as number[];
    const place = SCALE.place(us);
    column[place] = (column[place] as number) + 1;
  }

  /** The rows in use. */
  result(): Heat {
    const { columns, columnS: column_s } = this;
    const used = SCALE.used((row) => columns.some((column) => (column[row] as number) > 0));
    if (used === null) return { column_s, edges_ms: [], columns: [] };
    const { from, to, edges } = used;
    return { column_s, edges_ms: edges, columns: columns.map((one) => one.slice(from, to)) };
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
