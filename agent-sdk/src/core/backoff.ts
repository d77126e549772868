/**
 * How long to wait before the next connect. There are two counters, because a flaky network and a
 * wrong token need different patience: `attempts` doubles the wait from a second to a minute and
 * restarts after a stable link; `refusals` doubles it to an hour and restarts only when a link ends
 * for a reason that does not need a person.
 *
 * [portable]
 */
import type { Failure } from "@blindrelay/protocol";
import {
  BACKOFF_FIRST_MS,
  BACKOFF_MAX_MS,
  doubled,
  jittered,
  MAX_ASKED_WAIT_MS,
  randomFraction,
} from "@blindrelay/protocol";
import type { Random } from "../ports.ts";
import { SLOW_MAX_MS, SPREAD_MS, STABLE_MS } from "./defaults.ts";

export class Backoff {
  declare private readonly random: Random;
  declare private readonly offset: number;
  private attempts = 0;
  private refusals = 0;

  /**
   * `offset`: a number below 2^32 that differs between devices, such as a CRC of the agent_id:
   * boards with the same randomness after every reset must not all reconnect at the same instant.
   */
  constructor(random: Random, offset: number) {
    this.random = random;
    this.offset = offset;
  }

  /**
   * Milliseconds until the next connect. `askedMs`: what the relay requested, or null. `onlineMs`:
   * how long the ended link was online, 0 if it never was. Not for the course `never`.
   */
  next(failure: Failure, askedMs: number | null, onlineMs: number): number {
    const asked = askedMs === null ? 0 : Math.min(askedMs, MAX_ASKED_WAIT_MS);
    if (onlineMs >= STABLE_MS) {
      this.attempts = 0;
      if (failure.course !== "slow") this.refusals = 0;
    }
    if (failure.course === "slow") {
      const wait = Math.max(doubled(failure.waitMs, this.refusals, SLOW_MAX_MS), asked);
      this.refusals++;
      // Never shorter: both the contract and the relay specify a minimum.
      return wait + Math.floor((wait / 4) * this.fraction());
    }
    if (failure.course === "asked" || failure.course === "spread") {
      const wait = asked > 0 ? asked : failure.waitMs;
      // The relay has staggered the other waits over its peers already.
      return failure.course === "asked" ? wait : wait + Math.floor(SPREAD_MS * this.fraction());
    }
    const wait = doubled(BACKOFF_FIRST_MS, this.attempts, BACKOFF_MAX_MS);
    this.attempts++;
    return Math.max(jittered(wait, this.fraction()), asked);
  }

  private fraction(): number {
    return randomFraction(this.random, this.offset);
  }
}
