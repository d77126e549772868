/**
 * A token bucket that keeps the client below the relay's rate limit (section 3). Openings and
 * keep-alives may overdraw it; new calls wait until it is positive again.
 */
export class Pacer {
  private readonly perSecond: number;
  private readonly burst: number;
  private level: number;
  private filledAt: number;

  constructor(perSecond: number, burst: number, nowMs: number) {
    this.perSecond = perSecond;
    this.burst = burst;
    this.level = burst;
    this.filledAt = nowMs;
  }

  /** Counts one message that was sent. */
  spend(nowMs: number): void {
    this.fill(nowMs);
    this.level -= 1;
  }

  /** Milliseconds until another call may be sent; 0: now. */
  waitMs(nowMs: number): number {
    this.fill(nowMs);
    return this.level >= 1 ? 0 : Math.ceil(((1 - this.level) * 1000) / this.perSecond);
  }

  private fill(nowMs: number): void {
    const gained = ((nowMs - this.filledAt) / 1000) * this.perSecond;
    this.level = Math.min(this.burst, this.level + gained);
    this.filledAt = nowMs;
  }
}
