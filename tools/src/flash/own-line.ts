/**
 * A board whose console was on the very line that its agent speaks on now: for the moment somebody
 * must be the bridge at the other end, or nobody could see that it came online.
 */
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { carrySealed } from "../bridge/sealed.ts";
import type { Port } from "../console/port.ts";

/** Carries for it, beside whoever listens to the port. Resolves when the link is ended. */
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
