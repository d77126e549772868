import type { RestartReason } from "@blindrelay/protocol";

const TEXTS: { readonly [reason in RestartReason]: string } = {
  first: "nothing is known of an earlier start",
  reset: "the last restart: a power cut, a reset or a wake",
  stop: "the last restart: it was stopped",
  throw: "the last restart: an uncaught error",
  memory: "the last restart: it ran out of memory",
  push: "the last restart: for another program",
};

/** What the `reason` of a restart in an answer to `system.log` means, which may be any text. */
export const restartText = (reason: string): string =>
  Object.hasOwn(TEXTS, reason) ? TEXTS[reason as RestartReason] : `the last restart: ${reason}`;
