/**
 * Entry point on Espruino: `require("blindrelay").start(program, firmwareVersion)`, using its own
 * WebSocket client. Boards without a network use serial.ts instead.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import { agentStatus, provisionAgent, startOver, stopAgent } from "./agent.ts";
import { socketLinks } from "./sockets.ts";

const startAgent = (program: Program, firmwareVersion?: string): void =>
  startOver(socketLinks, program, firmwareVersion);

export {
  agentStatus as status,
  provisionAgent as provision,
  startAgent as start,
  stopAgent as stop,
};
