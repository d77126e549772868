/** The course of a run: phases with their lengths, and samples of its progress. */
import type { Report, Sample } from "./report.ts";

const SAMPLE_MS = 100;
/** A long run keeps every second sample, then every fourth, to limit the points of charts. */
const MAX_SAMPLES = 1_000;

export class Timeline {
  readonly phases: Report["phases"] = [];
  private readonly look: () => Omit<Sample, "at_s">;
  private readonly startedAt = performance.now();
  private readonly timer: NodeJS.Timeout;
  private samples: Sample[] = [];
  private every = 1;
  private skipped = 0;

  constructor(look: () => Omit<Sample, "at_s">) {
    this.look = look;
    this.timer = setInterval(() => this.sample(), SAMPLE_MS);
  }

  /** Seconds since the start. */
  elapsed(): number {
    return Math.round(performance.now() - this.startedAt) / 1000;
  }

  /** Runs `go` and measures how long it took, even if it fails. */
  async phase<T>(name: string, go: () => Promise<T>): Promise<T> {
    const from = this.elapsed();
    try {
      return await go();
    } finally {
      this.phases.push({ name, seconds: Number((this.elapsed() - from).toFixed(3)) });
    }
  }

  /** 0 for a phase that did not begin. */
  secondsOf(name: string): number {
    return this.phases.find((phase) => phase.name === name)?.seconds ?? 0;
  }

  /** All samples, the last one taken now. */
  series(): Sample[] {
    return [...this.samples, this.now()];
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private sample(): void {
    this.skipped += 1;
    if (this.skipped < this.every) return;
    this.skipped = 0;
    this.samples.push(this.now());
    if (this.samples.length < MAX_SAMPLES) return;
    this.samples = this.samples.filter((_, i) => i % 2 === 0);
    this.every *= 2;
  }

  private now(): Sample {
    return { at_s: this.elapsed(), ...this.look() };
  }
}
