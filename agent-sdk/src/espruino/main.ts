/**
 * The door on Espruino: `require("blindrelay").start(program, firmwareVersion)`, over WebSockets of
 * its own. A board without a network takes serial.ts in its place.
 *
 * [portable]
 */
import type { Program } from "../core/agent.ts";
import type { BoardLinks } from "./agent.ts";
import { agentStatus, boardCrypto, provisionAgent, startOver, stopAgent } from "./agent.ts";
import type { EspruinoSockets } from "./board.ts";
import { boardRandom, boardTimer } from "./ports.ts";
import { WebSocketLinks } from "./websocket.ts";

declare const require: (name: string) => unknown;

const optionalSockets = (name: string): EspruinoSockets | null => {
  try {
    return require(name) as EspruinoSockets;
  } catch {
    return null;
  }
};

const socketLinks: BoardLinks = (_config, _bootCount, maxMessage) =>
  new WebSocketLinks({
    net: require("net") as EspruinoSockets,
    tls: optionalSockets("tls"),
    random: boardRandom,
    crypto: boardCrypto,
    timer: boardTimer,
    maxMessage: maxMessage,
  });

const startAgent = (program: Program, firmwareVersion?: string): void =>
  startOver(socketLinks, program, firmwareVersion);

export {
  agentStatus as status,
  provisionAgent as provision,
  startAgent as start,
  stopAgent as stop,
};
