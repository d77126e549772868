/** What clients of a live run stand on, but for their link. */
import { randomBytes } from "node:crypto";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { nodeSuite } from "@blindrelay/protocol/suites/node";

export const clientPorts = () => ({
  timer: systemTimer(),
  random: (length: number) => randomBytes(length),
  suite: nodeSuite(),
  log: () => undefined,
});
