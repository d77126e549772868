/**
 * Finds the error in what a board prints: Espruino prints `Uncaught …` and, on lines that follow at
 * once, the innermost place first. Other errors have no place.
 */

/** Longer than a line takes at a console's slowest rate. */
const PLACE_MS = 500;
/** Not `:3:12`, a place in what has no name. */
const PLACE = /^\s+at (?:\S+ \()?([^:].*:\d+:\d+)\)?$/;

export class FirstError {
  private readonly tell: (error: string) => void;
  private error: string | null = null;
  private timer: ReturnType<typeof setTimeout> | null = null;

  /** `tell`: called once with the first error and its place. */
  constructor(tell: (error: string) => void) {
    this.tell = tell;
  }

  receive(line: string): void {
    if (this.error === null) {
      if (!line.startsWith("Uncaught ")) return;
      this.error = line;
      this.timer = setTimeout(() => this.tell(line), PLACE_MS);
      return;
    }
    const place = PLACE.exec(line)?.[1];
    if (this.timer === null || place === undefined) return;
    this.stop();
    this.tell(`${this.error} (${place})`);
  }

  /** Tells nothing more. */
  stop(): void {
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
  }
}
