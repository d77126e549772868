/**
 * Control lines as a tool toggles them, gathered into one command that runs at the bridge with the
 * tool's own gaps. Over a network each step would come too late: a chip that is reset into its boot
 * loader has milliseconds.
 */
import type { ControlLines } from "@blindrelay/agent-sdk/bridge";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";

/** A tool that pauses for this long is not in a sequence: esptool's longest gap is 120 ms. */
const QUIET_MS = 250;
/**
 * Lines that change within this time are meant to change at once, and do so at the bridge. A tool
 * sets one after the other, and pyserial looks for each answer after 50 ms: its changes without a
 * pause are that far apart, those with esptool's shortest pause 100 ms.
 */
const AT_ONCE_MS = 95;
/** Limits of `serial.signals`. */
const MAX_STEPS = 32;
const MAX_MS = 10_000;

export interface SequenceStep extends ControlLines {
  readonly after_ms: number;
}

export class SignalSequence {
  private readonly timer: TimerPort;
  private readonly run: (steps: readonly SequenceStep[]) => void;
  private steps: SequenceStep[] = [];
  private lastAt = 0;
  private takesMs = 0;
  private waiting: unknown = null;

  constructor(timer: TimerPort, run: (steps: readonly SequenceStep[]) => void) {
    this.timer = timer;
    this.run = run;
  }

  /** One change of the tool's. */
  add(lines: ControlLines): void {
    const now = this.timer.now();
    let gapMs = this.steps.length === 0 ? 0 : Math.round(now - this.lastAt);
    if (this.steps.length === MAX_STEPS || this.takesMs + gapMs > MAX_MS) {
      this.flush();
      gapMs = 0;
    }
    const last = this.steps.at(-1);
    const isNew = last === undefined || Object.keys(lines).some((name) => name in last);
    if (!isNew && gapMs < AT_ONCE_MS) this.steps[this.steps.length - 1] = { ...last, ...lines };
    else {
      this.steps.push({ ...lines, after_ms: gapMs });
      this.takesMs += gapMs;
      this.lastAt = now;
    }
    if (this.waiting !== null) this.timer.clear(this.waiting);
    this.waiting = this.timer.set(QUIET_MS, () => {
      this.waiting = null;
      this.flush();
    });
  }

  /** Runs what was gathered: something else is to follow it. */
  flush(): void {
    if (this.waiting !== null) this.timer.clear(this.waiting);
    this.waiting = null;
    const { steps } = this;
    this.steps = [];
    this.takesMs = 0;
    if (steps.length > 0) this.run(steps);
  }
}
