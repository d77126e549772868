/**
 * Entry point like main.ts, for a board that accepts programs over the relay: `boot` replaces
 * `start`.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import { agentStatus, provisionAgent, startOver, stopAgent } from "./agent.ts";
import { bootBoard } from "./push.ts";
import { socketLinks } from "./sockets.ts";

const startAgent = (program: Program, firmwareVersion?: string): void =>
  startOver(socketLinks, program, firmwareVersion);

const bootAgent = (firmwareVersion?: string): void => bootBoard(socketLinks, firmwareVersion);

export {
  agentStatus as status,
  bootAgent as boot,
  provisionAgent as provision,
  startAgent as start,
  stopAgent as stop,
};
