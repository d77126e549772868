/**
 * The door on an Espruino without a network: the same `require("blindrelay")`, over a UART at whose
 * other end `blindrelay bridge --mode sealed` runs. Which UART says "serial" in the configuration.
 *
 * The console leaves that line before anything else: frames use every byte, and what comes in there
 * is not the person's. Elsewhere it stays; else it goes to where a person finds it, or to nowhere.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import { agentStatus, provisionAgent, startOver, stopAgent } from "./agent.ts";
import { uartLinks } from "./uart.ts";

const startAgent = (program: Program, firmwareVersion?: string): void =>
  startOver(uartLinks, program, firmwareVersion);

export {
  agentStatus as status,
  provisionAgent as provision,
  startAgent as start,
  stopAgent as stop,
};
