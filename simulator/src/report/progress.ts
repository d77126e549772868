/**
 * The progress display of a run, on standard error: on a terminal one line that is redrawn for each
 * step, in a pipe only the messages.
 */
import type { WriteStream } from "node:tty";
import { count, seconds } from "./format.ts";

const REDRAW_MS = 100;
const BAR_WIDTH = 24;

interface Step {
  what: string;
  total: number;
  startedAt: number;
}

export class Progress {
  private readonly out: WriteStream;
  private step: Step | null = null;
  private read: (() => number) | null = null;
  private tell: (() => string) | null = null;
  private drawn = false;
  private timer: NodeJS.Timeout | null = null;

  constructor(out: WriteStream) {
    this.out = out;
  }

  /** Prints a line that stays. */
  say(text: string): void {
    this.clear();
    this.out.write(`${text}\n`);
    this.draw();
  }

  /**
   * The next step: `total` of `what` to do. `read` returns how many are done; `tell` the text to
   * show instead of the elapsed time.
   */
  start(what: string, total: number, read: () => number, tell: (() => string) | null = null): void {
    this.stop();
    if (!this.out.isTTY) return;
    this.step = { what, total, startedAt: performance.now() };
    this.read = read;
    this.tell = tell;
    this.timer = setInterval(() => this.draw(), REDRAW_MS);
    this.draw();
  }

  /** Ends the step and leaves its line in place. Harmless without one. */
  stop(): void {
    if (this.step === null) return;
    const line = this.line();
    this.clear();
    this.step = null;
    this.read = null;
    if (this.timer !== null) clearInterval(this.timer);
    this.timer = null;
    this.out.write(`${line}\n`);
  }

  private draw(): void {
    if (this.step === null) return;
    this.out.write(`\r${this.line()}\x1b[K`);
    this.drawn = true;
  }

  private clear(): void {
    if (this.drawn) this.out.write("\r\x1b[K");
    this.drawn = false;
  }

  private line(): string {
    const { what, total, startedAt } = this.step as Step;
    const done = this.read?.() ?? 0;
    const more = this.tell?.() ?? seconds((performance.now() - startedAt) / 1000);
    const text = `${count(done)} of ${count(total)} ${what}, ${more}`;
    const filled = Math.round((Math.min(done, total) / total) * BAR_WIDTH);
    const line = `${"█".repeat(filled)}${"░".repeat(BAR_WIDTH - filled)}  ${text}`;
    return line.slice(0, Math.max(20, (this.out.columns || 80) - 1));
  }
}
