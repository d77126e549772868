/**
 * What `system.log` answers (section 2, "Inside a packet").
 *
 * [portable] types only, nothing is left of this file at run time.
 */

/**
 * Why a device restarted. `first`: nothing is known of an earlier start; `reset`: a power cut, a
 * reset, or a wake from deep sleep; `stop`: it was stopped; `throw`: an uncaught error ended it;
 * `memory`: it ran out of memory; `push`: for another program.
 */
export type RestartReason = "first" | "reset" | "stop" | "throw" | "memory" | "push";

export interface LogLine {
  /** Counts from 1 at each start. */
  readonly n: number;
  /** Since the start. */
  readonly at_ms: number;
  readonly level: string;
  readonly text: string;
}

/** Of a device that may be older or newer: with any reason. */
export interface DeviceStart {
  /** Its number. */
  readonly boot: number;
  readonly restart: { readonly reason: string; readonly text: string };
  /** Lines that are no longer kept. */
  readonly dropped: number;
}

export interface LogAnswer extends DeviceStart {
  readonly lines: readonly LogLine[];
}
