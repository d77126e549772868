/**
 * For a board whose prompt was on the line that its agent now uses: this process must act as the
 * bridge for a moment, or it could not see the agent come online.
 */
import type { Port } from "@blindrelay/agent-sdk/board";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { carrySealed } from "../bridge/sealed.ts";

/** Carries its messages, in addition to the port's listener. Resolves when the link has ended. */
export const carryOwnLine = (port: Port, url: string): (() => Promise<void>) => {
  const carrier = carrySealed(port, { url, timer: systemTimer(), log: () => undefined });
  const { events } = port;
  port.events = {
    ...events,
    received: (bytes) => {
      events.received(bytes);
      carrier.data(bytes);
    },
  };
  return () => carrier.end("the flash is over");
};
