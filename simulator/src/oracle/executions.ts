/**
 * Compares calls and executions that were counted separately: the device counts its handler runs,
 * the client its calls. An answered call ran once; one that ended as retryable did not run; any
 * other may have run. A call that may be executed again sets no upper bound.
 */

import { getOrMake } from "../base/maps.ts";

/** How a call ended; `unknown`: it may have run. */
export type CallEnd = "answered" | "retryable" | "unknown";

interface Counts {
  answered: number;
  unknown: number;
  /** Its call may be executed more than once. */
  isIdempotent: boolean;
}

export class ExecutionOracle {
  private readonly violate: (what: string) => void;
  private readonly devices = new Map<string, Counts>();

  constructor(violate: (what: string) => void) {
    this.violate = violate;
  }

  ended(device: string, end: CallEnd, isIdempotent: boolean): void {
    const made = () => ({ answered: 0, unknown: 0, isIdempotent });
    const counts = getOrMake(this.devices, device, made);
    counts.isIdempotent ||= isIdempotent;
    if (end === "answered") counts.answered += 1;
    else if (end === "unknown") counts.unknown += 1;
  }

  /** `executed`: handler runs of a device, once every call to it has ended. */
  compare(device: string, executed: number): void {
    const { answered, unknown, isIdempotent } = this.devices.get(device) ?? NO_CALLS;
    if (executed < answered) {
      this.violate(`${device} answered ${answered} calls and executed ${executed}`);
    }
    const most = answered + unknown;
    if (executed > most && !isIdempotent) {
      const why = `${answered} were answered, and ${unknown} ended with unknown outcome`;
      this.violate(`${device} executed ${executed} calls, of which at most ${most} may be: ${why}`);
    }
  }
}

const NO_CALLS: Counts = { answered: 0, unknown: 0, isIdempotent: false };
