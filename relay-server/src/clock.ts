/**
 * The relay's two clocks. Timers, deadlines and lockouts use the steady clock, which no correction
 * of the machine's time changes. What is stored or compared with stored times (expiry, one-time
 * codes, retention) uses the current wall clock, so a wrong time has no effect after it is
 * corrected; with a database it is the database's (store/clock.ts).
 */

/** Milliseconds. */
export interface Clocks {
  /**
   * Never runs backwards and never jumps; approximately Unix time, if that was correct at the
   * start.
   */
  readonly steadyMs: () => number;
  /** Unix time according to the machine, or to the database. */
  readonly wallMs: () => number;
}

export const systemClocks = (
  wallMs: () => number = Date.now,
  counterMs: () => number = () => performance.now(),
): Clocks => {
  const origin = wallMs() - counterMs();
  return { wallMs, steadyMs: () => Math.floor(counterMs() + origin) };
};

/** Between two checks; a clock disciplined by NTP moves by far less. */
const JUMP_MS = 60_000;
/** Nothing is deleted for this long after a jump, which may have been a glitch. */
const DISTRUST_MS = 24 * 3_600_000;

interface ClockWatch {
  /** Compares both clocks; call it often. True if the wall clock has just jumped. */
  look(): boolean;
  /** Whether the wall clock has been steady for long enough to rely on it for deletions. */
  isTrusted(): boolean;
}

/** Detects jumps of the wall clock, in either direction. */
export const clockWatch = ({ steadyMs, wallMs }: Clocks): ClockWatch => {
  let ahead = wallMs() - steadyMs();
  let distrustedUntil = Number.NEGATIVE_INFINITY;
  const look = (): boolean => {
    const now = wallMs() - steadyMs();
    const jumped = Math.abs(now - ahead) > JUMP_MS;
    if (jumped) distrustedUntil = steadyMs() + DISTRUST_MS;
    ahead = now;
    return jumped;
  };
  return {
    look,
    isTrusted: () => {
      look();
      return steadyMs() >= distrustedUntil;
    },
  };
};
