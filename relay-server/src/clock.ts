/**
 * The relay's one clock: Unix time that never runs backwards and never stands still, as the hub
 * wants it, and yet follows a machine that learns the right time only after its start, as
 * one-time codes want it.
 */

/** Milliseconds since 1970. `wall` may jump; `steady` counts on whatever happens to it. */
export const relayClock = (
  wall: () => number = Date.now,
  steady: () => number = () => performance.now(),
): (() => number) => {
  let ahead = wall() - steady();
  return () => {
    ahead = Math.max(ahead, wall() - steady());
    return Math.floor(steady() + ahead);
  };
};
