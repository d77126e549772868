/**
 * What the next start's log says of this one (core/log.ts), for runtimes where something else than
 * the agent knows why it ended.
 *
 * [portable]
 */
import type { RestartReason } from "@blindrelay/protocol";
import type { StoragePort } from "../ports.ts";

/** `text`: of what failed, or "". Never throws. */
export const tellEnd = (storage: StoragePort, reason: RestartReason, text: string): void => {
  try {
    // biome-ignore lint/style/useTemplate: on Espruino a template forgets that a text is UTF-8.
    storage.write("log.last", reason + "\n" + text);
  } catch {
    // A log must not keep a device from its work.
  }
};

/** From the words of a supervisor or of an engine: a trial's end is a push that failed. */
export const endReason = (text: string, isTrial: boolean): RestartReason => {
  if (text.indexOf("memory") >= 0) return "memory";
  return isTrial ? "push" : "reset";
};
