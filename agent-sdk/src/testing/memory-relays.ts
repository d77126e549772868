/** A network in memory for linkConformance: the relays' ends of its links, in order. */

import { type ManualTimer, memoryNetwork } from "../memory/index.ts";
import type { LinkPort } from "../ports.ts";
import type { RelaySide } from "./conformance/index.ts";

export const memoryRelays = (
  timer: ManualTimer,
  latencyMs = 0,
): {
  readonly port: LinkPort;
  readonly url: string;
  readonly deadUrl: string;
  readonly relays: readonly RelaySide[];
} => {
  const relays: RelaySide[] = [];
  const port = memoryNetwork({
    timer,
    latencyMs,
    accept: (end) => {
      if (end.url.includes("dead")) return false;
      const received: string[] = [];
      let closedWith: number | null = null;
      end.received = (text) => received.push(text);
      end.closed = (code) => {
        closedWith = code;
      };
      relays.push({
        received,
        get closedWith() {
          return closedWith;
        },
        send: (text) => end.send(text),
        close: (code, reason) => end.close(code, reason),
      });
      return true;
    },
  });
  return { port, url: "memory://relay", deadUrl: "memory://dead", relays };
};

/** Advances time until `done` is true; fails the test if that does not happen. */
export const untilIn =
  (timer: ManualTimer) =>
  async (done: () => boolean): Promise<void> => {
    for (let i = 0; i < 10000 && !done(); i++) timer.advance(1);
    if (!done()) throw new Error("it never happened");
  };
