/**
 * A board's connection to the relay over its own WebSocket client.
 *
 * [portable]
 */
import type { BoardLinks } from "./agent.ts";
import { boardCrypto } from "./agent.ts";
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

export const socketLinks: BoardLinks = (_config, _bootCount, maxMessage) =>
  new WebSocketLinks({
    net: require("net") as EspruinoSockets,
    tls: optionalSockets("tls"),
    random: boardRandom,
    crypto: boardCrypto,
    timer: boardTimer,
    maxMessage: maxMessage,
  });
