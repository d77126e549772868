/** Errors that a program on Node can tell apart; a tool maps each class to one exit code. */
import type { BootCountProblem } from "../core/bootcount.ts";

/**
 * `locked`: another process runs on this folder; `foreign`: the folder holds other things and no
 * boot count; the rest as in bootcount.ts.
 */
export type StateProblem = BootCountProblem | "locked" | "foreign";

/**
 * The state folder does not let this agent start. Nothing was sent. (`blindrelay agent run`: exit
 * 7.)
 */
export class StateError extends Error {
  readonly problem: StateProblem;

  constructor(problem: StateProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "StateError";
    this.problem = problem;
  }
}

/** The configuration cannot be right: a missing value, a secret of the wrong kind. */
export class ConfigError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ConfigError";
  }
}

/**
 * `unreachable`: try later; `refused`: the relay says no; `untrusted`: no pinned key signed it;
 * `downgrade`: not above the running version; `corrupt`: not the signed bytes.
 */
export type ReleaseProblem = "unreachable" | "refused" | "untrusted" | "downgrade" | "corrupt";

/** There is no update to install. Nothing on the device was changed. */
export class ReleaseError extends Error {
  readonly problem: ReleaseProblem;

  constructor(problem: ReleaseProblem, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = "ReleaseError";
    this.problem = problem;
  }
}
