/** Errors that a program on Node can distinguish; the command maps each class to an exit code. */
import type { BootCountProblem } from "../core/bootcount.ts";

/**
 * `locked`: another process uses this folder; `foreign`: the folder contains other files and no
 * boot count; `noSeed`: it was provisioned for packet version "1" or "2"; `pushKey`: its push key
 * is another one, or damaged; the others are explained in bootcount.ts.
 */
export type StateProblem = BootCountProblem | "locked" | "foreign" | "noSeed" | "pushKey";

/**
 * The state folder does not allow this agent to start; nothing was sent. (`blindrelay agent run`:
 * exit 7.)
 */
export class StateError extends Error {
  readonly problem: StateProblem;

  constructor(problem: StateProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "StateError";
    this.problem = problem;
  }
}

/** The configuration is invalid: for example a missing value, or a secret of the wrong kind. */
export class ConfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ConfigError";
  }
}

/**
 * `unreachable`: try later; `refused`: the relay refused; `untrusted`: no pinned key signed it, or
 * fewer than the threshold; `downgrade`: not above the running version; `superseded`: a newer list
 * was seen; `expired`: past its end; `corrupt`: not the signed bytes; `disk`: no room, or a fault.
 */
export type ReleaseProblem =
  | "unreachable"
  | "refused"
  | "untrusted"
  | "downgrade"
  | "superseded"
  | "expired"
  | "corrupt"
  | "disk";

/** There is no update to install. Nothing on the device has changed. */
export class ReleaseError extends Error {
  readonly problem: ReleaseProblem;

  constructor(problem: ReleaseProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ReleaseError";
    this.problem = problem;
  }
}
