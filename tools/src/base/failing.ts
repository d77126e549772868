/** Turns what a step throws into the failure of the command. */
import { Failure, type FailureKind, messageOf } from "@blindrelay/protocol/command-line";

/** What `step` returns. What it throws becomes a Failure whose message begins with `start`. */
export const failing = <T>(kind: FailureKind, start: string, step: () => T): T => {
  try {
    return step();
  } catch (error) {
    throw new Failure(kind, start + messageOf(error), error);
  }
};
