/**
 * The LinkPort on Node: one `ws` connection. It decides nothing; timeouts and closing are up to the
 * core.
 */
import { CLOSE_GRACE_MS, WS_OPTIONS } from "@blindrelay/protocol/ws-options";
import { WebSocket } from "ws";
import type { LinkEvents, LinkPort } from "../ports.ts";
import type { PausableLink } from "../serial/carrier.ts";

export { relayUrl } from "@blindrelay/protocol/relay-url";

/** A LinkPort with links that can be paused. */
export interface WebSocketLinks extends LinkPort {
  connect(url: string, events: LinkEvents): PausableLink;
}

export const webSocketLinks = (): WebSocketLinks => ({
  connect(url: string, events: LinkEvents): PausableLink {
    const socket = new WebSocket(url, WS_OPTIONS);
    // ws reports the reason of a failure before it closes, and closes in any case.
    let failure = "";
    let grace: NodeJS.Timeout | undefined;
    socket.on("open", () => events.opened());
    socket.on("message", (data, isBinary) => {
      if (!isBinary && socket.readyState === WebSocket.OPEN) events.received(data.toString());
    });
    socket.on("error", (error) => {
      failure = error.message;
    });
    socket.on("close", (code, reason) => {
      clearTimeout(grace);
      events.closed(code, reason.toString() || failure);
    });
    return {
      send(text) {
        if (socket.readyState === WebSocket.OPEN) socket.send(text);
      },
      close(code, reason) {
        if (socket.readyState === WebSocket.CLOSED || grace !== undefined) return;
        grace = setTimeout(() => socket.terminate(), CLOSE_GRACE_MS);
        grace.unref();
        socket.close(code, reason);
      },
      queuedBytes: () => socket.bufferedAmount,
      pause: () => socket.pause(),
      resume: () => socket.resume(),
    };
  },
});
