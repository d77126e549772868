/** Runs on Espruino: its WebSocket client alone, and what it reports about each connection. */
import type { EspruinoCrypto, EspruinoSockets } from "../espruino/board.ts";
import { boardRandom, boardTimer } from "../espruino/ports.ts";
import { WebSocketLinks } from "../espruino/websocket.ts";

/**
 * `closed` gets everything that was reported, the close last. Never throws, whatever the server
 * does.
 */
export const hear = (
  net: EspruinoSockets,
  crypto: EspruinoCrypto,
  url: string,
  closed: (log: string[]) => void,
): void => {
  const log: string[] = [];
  const links = new WebSocketLinks({
    net: net,
    tls: null,
    random: boardRandom,
    crypto: crypto,
    timer: boardTimer,
    maxMessage: 4096,
  });
  links.connect(url, {
    opened: () => log.push("opened"),
    received: (text) => log.push(`${text.length}`),
    closed: (code) => {
      log.push(`closed ${code}`);
      closed(log);
    },
  });
};
