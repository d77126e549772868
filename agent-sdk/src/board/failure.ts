import { Failure } from "@blindrelay/protocol/command-line";

/**
 * Why a board was not reached, or is none to flash: `gone` the cable or port was lost, `silent` it
 * stopped answering, `nothing` nothing answered at all, `damaged` bytes arrive wrong, `foreign` no
 * Espruino answers, `lacks` its build lacks what an agent needs, `full` its Storage, `refused` it
 * did not take a file, `names` the program uses what it does not have.
 */
export type BoardReason =
  | "gone"
  | "silent"
  | "nothing"
  | "damaged"
  | "foreign"
  | "lacks"
  | "full"
  | "refused"
  | "names";

/** A failure of a board, with the reason for programs that tell it in their own words. */
export class BoardFailure extends Failure {
  readonly reason: BoardReason;

  constructor(reason: BoardReason, message: string, cause?: unknown) {
    super(reason === "names" ? "usage" : "device", message, cause);
    this.reason = reason;
  }
}
