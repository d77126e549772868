/** Times as returned by REST: ISO 8601 in UTC. */
export const timestamp = (unixMs: number): string => new Date(unixMs).toISOString();

/** Whole seconds from one instant to a later one, rounded up. */
export const secondsUntil = (laterMs: number, nowMs: number): number =>
  Math.ceil((laterMs - nowMs) / 1000);
