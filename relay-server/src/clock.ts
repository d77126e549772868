/**
 * The relay's two clocks. Timers, deadlines and lockouts use the steady clock, which no correction
 * of the machine's time changes. What is stored or compared with stored times (expiry, one-time
 * codes, retention) uses the current wall clock, so a wrong time has no effect after it is
 * corrected.
 */

/** Milliseconds. */
export interface Clocks {
  /** Never runs backwards and never jumps; about Unix time, if that was right at the start. */
  readonly steadyMs: () => number;
  /** Unix time as the machine has it. */
  readonly wallMs: () => number;
}

export const systemClocks = (
  wallMs: () => number = Date.now,
  counterMs: () => number = () => performance.now(),
): Clocks => {
  const origin = wallMs() - counterMs();
  return { wallMs, steadyMs: () => Math.floor(counterMs() + origin) };
};

/** Between two looks; a clock that is disciplined by NTP moves by far less. */
const JUMP_MS = 60_000;
/** For this long after a jump nothing is deleted: it may have been a glitch. */
const DISTRUST_MS = 24 * 3_600_000;

export interface ClockWatch {
  /** Looks at both clocks; call it often. True if the wall clock has just jumped. */
  look(): boolean;
  /** Whether the wall clock has been steady for long enough to delete by it. */
  isTrusted(): boolean;
}

/** Notices jumps of the wall clock, to and fro. */
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
