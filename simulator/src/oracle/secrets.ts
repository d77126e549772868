/**
 * A device whose secret is changed over the air (contract, section 2b) always has one that an owner
 * holds, answers to no other, and forgets the one before. This oracle of one device is told what
 * its owners hold, what it starts with, and which secret each of its answers is under.
 */

/** A trial ends after this time, or at the second start after its beginning. */
const TRIAL_MS = 600_000;
const MAX_STARTS = 1;
/** Timers are due within this time. */
const SLACK_MS = 1_000;

interface Trial {
  readonly token: string;
  /** Since it began. */
  starts: number;
  /** When this start began to answer to it. */
  sinceMs: number;
}

export class SecretsOracle {
  private readonly violate: (what: string) => void;
  /** What the device must have now; with a trial, it may have that one's. */
  private present: string;
  private trial: Trial | null = null;
  private readonly held: Set<string>;
  /** All that it has ever had. */
  private readonly had: Set<string>;

  constructor(violate: (what: string) => void, provisioned: string) {
    this.violate = violate;
    this.present = provisioned;
    this.held = new Set([provisioned]);
    this.had = new Set([provisioned]);
  }

  /** An owner keeps this secret, and may send it. */
  hold(token: string): void {
    this.held.add(token);
  }

  /** Nobody keeps it any more. */
  release(token: string): void {
    this.held.delete(token);
  }

  /** It starts with these; `texts`: what is on its medium. */
  started(present: string, trial: string | null, nowMs: number, texts: readonly string[]): void {
    const before = this.trial;
    if (present !== this.present && present !== before?.token) {
      this.violate(`starts with ${this.name(present)}`);
    }
    const starts = before?.token === trial ? before.starts + 1 : 1;
    if (trial !== null && starts > MAX_STARTS) {
      this.violate(`has a trial at start ${starts} after it began`);
    }
    this.present = present;
    this.trial = trial === null ? null : { token: trial, starts, sinceMs: nowMs };
    this.mustBeHeld();
    this.mustForget(texts);
  }

  /** It has a secret on trial, while it runs. */
  tries(token: string, nowMs: number): void {
    this.trial = { token, starts: 0, sinceMs: nowMs };
    this.mustBeHeld();
  }

  /** The secret on trial has become its own. */
  replaced(texts: readonly string[]): void {
    this.present = this.trial?.token ?? this.present;
    this.trial = null;
    this.mustBeHeld();
    this.mustForget(texts);
  }

  /** Sessions of this secret have opened a packet, and answer it. */
  answers(token: string, nowMs: number): void {
    if (token === this.present) return;
    if (this.trial?.token !== token) this.violate(`answers to ${this.name(token)}`);
    else if (nowMs - this.trial.sinceMs > TRIAL_MS + SLACK_MS) {
      this.violate("answers to a secret whose trial is over");
    }
  }

  private mustBeHeld(): void {
    if (!this.held.has(this.present)) this.violate("has a secret that nobody holds");
    if (this.trial !== null && !this.held.has(this.trial.token)) {
      this.violate("has a secret on trial that nobody holds");
    }
  }

  private mustForget(texts: readonly string[]): void {
    this.had.add(this.present);
    for (const token of this.had) {
      if (token === this.present) continue;
      if (texts.some((text) => text.includes(token))) {
        this.violate(`still has ${this.name(token)} on its medium`);
      }
    }
  }

  private name(token: string): string {
    if (this.had.has(token)) return "a secret that was replaced";
    return this.held.has(token) ? "a secret that is not on trial" : "a secret that nobody holds";
  }
}
