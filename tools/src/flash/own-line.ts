/**
 * A board whose console was on the line that its agent uses now: for the moment this process
 * must be the bridge at the other end, or its coming online could not be observed.
 */
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { carrySealed } from "../bridge/sealed.ts";
import type { Port } from "../repl/port.ts";

/** Carries for it, in addition to the port's listener. Resolves when the link is ended. */
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
