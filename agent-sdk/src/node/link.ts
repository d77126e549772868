/** The LinkPort on Node: one `ws` connection. It decides nothing; the core times out and closes. */
import { MAX_FRAGMENTS, MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { type ClientOptions, WebSocket } from "ws";
import type { LinkEvents, LinkPort } from "../ports.ts";
import type { PausableLink } from "../serial/carrier.ts";

export { relayUrl } from "@blindrelay/protocol/relay-url";

/** How long the relay may take over the closing handshake before the socket is torn down. */
const CLOSE_GRACE_MS = 2000;

/**
 * Pieces of one frame that ws keeps until it is whole; each costs more than its bytes. A message of
 * 64 KiB in the smallest segments that TCP must carry (RFC 9293: 536 bytes) has 123.
 */
const MAX_CHUNKS = 512;

/**
 * `closeTimeout` is also for what ws closes itself: a message over the limit, a protocol error. The
 * core gives up a link on which no message was completed for LINK_SILENCE_MS.
 */
const OPTIONS: ClientOptions & {
  closeTimeout: number;
  maxFragments: number;
  maxBufferedChunks: number;
} = {
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  maxBufferedChunks: MAX_CHUNKS,
  perMessageDeflate: false,
  followRedirects: false,
  closeTimeout: CLOSE_GRACE_MS,
};

/** A LinkPort whose links can be kept from reading. */
export interface WebSocketLinks extends LinkPort {
  connect(url: string, events: LinkEvents): PausableLink;
}

export const webSocketLinks = (): WebSocketLinks => ({
  connect(url: string, events: LinkEvents): PausableLink {
    const socket = new WebSocket(url, OPTIONS);
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
