/**
 * A firmware version has booted once it has logged in: only that proves that the new program
 * starts, finds its state and reaches the network. The state folder records the last such version.
 */
import { isAbove } from "@blindrelay/protocol/releases";
import type { AgentCore } from "../core/agent-core.ts";
import type { StoragePort } from "../ports.ts";

const NAME = "firmware";

export interface BootConfirmed {
  readonly version: string;
  /** The version that booted before; null if none is known. */
  readonly previous: string | null;
  /** The previous version was above this one: the device fell back, or was flashed. */
  readonly fellBack: boolean;
}

export type BootConfirmedListener = (event: BootConfirmed) => void;

/** Watches for the first login; the returned function adds listeners, even after it. */
export const watchBoot = (
  core: AgentCore,
  storage: StoragePort,
  version: string | undefined,
): ((fn: BootConfirmedListener) => void) => {
  const listeners: BootConfirmedListener[] = [];
  let event: BootConfirmed | null = null;
  let seen = version === undefined;
  core.link.onState(({ state }) => {
    if (state !== "online" || seen || version === undefined) return;
    const previous = storage.read(NAME);
    // Throws on a full disk: then the next login tries again.
    if (previous !== version) storage.write(NAME, version);
    seen = true;
    if (previous === version) return;
    event = { version, previous, fellBack: previous !== null && isAbove(previous, version) };
    for (const fn of listeners) fn(event);
  });
  return (fn) => {
    listeners.push(fn);
    if (event !== null) fn(event);
  };
};
