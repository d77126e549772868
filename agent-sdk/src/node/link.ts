/** The LinkPort on Node. It decides nothing; timeouts and closing are up to the core. */
import { linksOver, type ProxySetting } from "@blindrelay/protocol/net/node";
import { WebSocket } from "ws";

export { relayUrl } from "@blindrelay/protocol/relay-url";

/** `proxy`: as in the options of `startAgent`. */
export const webSocketLinks = (proxy?: ProxySetting) => linksOver(WebSocket, proxy);
