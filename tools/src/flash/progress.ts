/** One line that is overwritten on a terminal; nothing in a pipe. */
const WIDTH = 30;
const CLEAR_LINE = "\r\x1b[K";

export class ProgressLine implements Disposable {
  private readonly on = process.stderr.isTTY === true;
  private shown = false;

  readonly show = (what: string, done: number, total: number, unit = "bytes"): void => {
    if (!this.on) return;
    const full = Math.round((done / total) * WIDTH);
    const bar = "#".repeat(full) + ".".repeat(WIDTH - full);
    process.stderr.write(`${CLEAR_LINE}${what} ${bar} ${done} of ${total} ${unit}`);
    this.shown = true;
  };

  /** Called before any other line is written. */
  clear(): void {
    if (this.shown) process.stderr.write(CLEAR_LINE);
    this.shown = false;
  }

  [Symbol.dispose](): void {
    this.clear();
  }
}
