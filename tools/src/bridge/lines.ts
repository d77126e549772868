/** Mode `lines`: the methods and events of a mapping, as a device program over an open port. */

import { messageOf, type OpenPort, type PortUser } from "@blindrelay/agent-sdk/bridge";
import type { Agent } from "@blindrelay/agent-sdk/node";
import type { TimerPort } from "@blindrelay/agent-sdk/ports";
import { LineEngine } from "./line-engine.ts";
import type { LineMapping } from "./mapping.ts";

interface LinesProgram {
  readonly program: (agent: Agent) => void;
  /** Bytes come to the user from now on. */
  begin(): void;
  readonly user: PortUser;
}

/** The device program for an open port. `serial.status` reports the state of the line. */
export const linesProgram = (
  port: OpenPort,
  mapping: LineMapping,
  timer: TimerPort,
): LinesProgram => {
  let agent: Agent | null = null;
  const engine = new LineEngine(mapping, {
    timer,
    write: (bytes) => port.write(bytes),
    event: (event, data) => {
      try {
        agent?.emit(event, data);
      } catch (error) {
        agent?.log("warn", "an event was not sent", { event, reason: messageOf(error) });
      }
    },
  });
  return {
    program: (made) => {
      agent = made;
      for (const command of mapping.commands) {
        made.handle(command.method, (params: unknown) => engine.call(command, params));
      }
      if (!mapping.commands.some(({ method }) => method === "serial.status")) {
        made.handle("serial.status", () => ({
          mode: "lines",
          ...engine.counters,
          dropped: engine.dropped,
        }));
      }
    },
    begin: () => engine.begin(),
    user: {
      data: (bytes) => engine.receive(bytes),
      end: async (reason) => engine.end(reason),
    },
  };
};
