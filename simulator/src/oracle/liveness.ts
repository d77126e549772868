/**
 * What must happen eventually. The world is calm if no fault is active and the last one ended 100 s
 * ago, or there was none: then no call fails, all peers are online, no client in use loses its
 * link, and none reconnects in a loop.
 */

import type { Allowed } from "../scenario/schema.ts";

/** Longer than any back-off after lost links. */
export const RECOVERY_US = 100_000_000;
/** Longer than nodes need to agree on most things once the bus works again. */
const AGREEMENT_US = 10_000_000;
/** The same for an agent's link: if messages were lost, they compare once in 30 s. */
const LINKS_US = 35_000_000;
/** Connections of one peer within `WINDOW_US` of calm; a session token of 30 s takes seven. */
const MAX_CONNECTS = 20;
const WINDOW_US = 100_000_000;

/** More clients than an agent holds sessions for cost each other calls, as the contract has it. */
const MADE_ROOM = "the agent closed the session to make room";

interface Window {
  fromUs: number;
  connects: number;
}

export class LivenessOracle {
  private readonly violate: (what: string) => void;
  private readonly allowed: ReadonlySet<string | undefined>;
  /** Active faults. */
  private on = 0;
  /** The latest time at which one was active. */
  private lastUs = Number.NEGATIVE_INFINITY;
  private readonly windows = new Map<string, Window>();

  /** `allow`: of the scenario; calls may end with its codes even without faults. */
  constructor(violate: (what: string) => void, allow: readonly Allowed[] = []) {
    this.violate = violate;
    this.allowed = new Set(allow.flatMap(({ code, rate }) => (rate === undefined ? code : [])));
  }

  faultBegins(nowUs: number): void {
    this.on += 1;
    this.lastUs = nowUs;
  }

  faultEnds(nowUs: number): void {
    this.on -= 1;
    this.lastUs = nowUs;
  }

  /** Something that a fault began is over only now, such as a restart whose drain took a while. */
  disturbed(nowUs: number): void {
    this.lastUs = nowUs;
  }

  isCalm(nowUs: number): boolean {
    return this.on === 0 && nowUs - this.lastUs >= RECOVERY_US;
  }

  /** No fault is active, and the last one has been over for a few seconds. */
  isQuiet(nowUs: number): boolean {
    return this.on === 0 && nowUs - this.lastUs >= AGREEMENT_US;
  }

  /** The same, for long enough that an agent has one link. */
  isOneLinkDue(nowUs: number): boolean {
    return this.on === 0 && nowUs - this.lastUs >= LINKS_US;
  }

  /** Whether the world was calm all the time from `fromUs` to now. */
  wasCalm(fromUs: number): boolean {
    return this.on === 0 && fromUs - this.lastUs >= RECOVERY_US;
  }

  callFailed(fromUs: number, code: string, what: string): void {
    if (what.endsWith(MADE_ROOM)) return;
    if (this.wasCalm(fromUs) && !this.allowed.has(code)) this.violate(`without any fault, ${what}`);
  }

  /** The link of a client in use ended, which had been online since `sinceUs`. */
  lost(who: string, sinceUs: number): void {
    if (this.wasCalm(sinceUs)) this.violate(`without any fault, ${who} lost its link in use`);
  }

  connected(who: string, nowUs: number): void {
    if (!this.isCalm(nowUs)) {
      this.windows.delete(who);
      return;
    }
    const window = this.windows.get(who);
    if (window === undefined || nowUs - window.fromUs > WINDOW_US) {
      this.windows.set(who, { fromUs: nowUs, connects: 1 });
      return;
    }
    window.connects += 1;
    if (window.connects > MAX_CONNECTS) {
      this.violate(`${who} connected ${window.connects} times within 100 s, without any fault`);
    }
  }

  /** `missing`: the peers that should be online but are not. */
  mustBeOnline(nowUs: number, missing: readonly string[]): void {
    if (missing.length === 0 || !this.isCalm(nowUs)) return;
    const names = missing.slice(0, 5).join(", ");
    const more = missing.length > 5 ? ` and ${missing.length - 5} more` : "";
    this.violate(`without any fault for 100 s, ${names}${more} are not online`);
  }
}
