/**
 * Entry point on an Espruino without a network: the same `require("blindrelay")`, over a UART with
 * `blindrelay bridge --mode sealed` at its other end. "serial" in the configuration names the UART.
 *
 * The console is moved off that line first: frames use every byte value, and input there does not
 * come from the user. A console elsewhere stays; otherwise it moves to where a user finds it, or
 * nowhere.
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
