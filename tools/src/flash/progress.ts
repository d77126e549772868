/** One line that is overwritten on a terminal; nothing in a pipe. */
const WIDTH = 30;
const CLEAR_LINE = "\r\x1b[K";

type Out = Pick<NodeJS.WriteStream, "isTTY" | "columns" | "write">;

export class ProgressLine implements Disposable {
  private readonly out: Out;
  private shown = false;

  constructor(out: Out = process.stderr) {
    this.out = out;
  }

  readonly show = (what: string, done: number, total: number, unit = "bytes"): void => {
    if (this.out.isTTY !== true) return;
    const count = `${done} of ${total} ${unit}`;
    // What wraps is not overwritten.
    const space = (this.out.columns || 80) - 1;
    const width = Math.max(0, Math.min(WIDTH, space - what.length - count.length - 2));
    const full = Math.round((done / total) * width);
    const bar = "#".repeat(full) + ".".repeat(width - full);
    this.out.write(`${CLEAR_LINE}${`${what} ${bar} ${count}`.slice(0, space)}`);
    this.shown = true;
  };

  /** Called before any other line is written. */
  clear(): void {
    if (this.shown) this.out.write(CLEAR_LINE);
    this.shown = false;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
