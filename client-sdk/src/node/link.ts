/** The link port over `ws`. */
import { MAX_FRAGMENTS, MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { type ClientOptions, WebSocket } from "ws";
import type { LinkPort } from "../ports.ts";

/** A relay that does not answer a close is left after this long. */
const CLOSE_GRACE_MS = 1_000;

/**
 * Pieces of one frame that ws keeps until it is whole; each costs more than its bytes. A message of
 * 64 KiB in the smallest segments that TCP must carry (RFC 9293: 536 bytes) has 123.
 */
const MAX_CHUNKS = 512;

/**
 * `closeTimeout` is also for what ws closes itself: a message over the limit, a protocol error. The
 * core gives up a link on which no message was completed for DEAD_RELAY_MS.
 */
const OPTIONS: ClientOptions & {
  closeTimeout: number;
  maxFragments: number;
  maxBufferedChunks: number;
} = {
  perMessageDeflate: false,
  maxPayload: MAX_MESSAGE_BYTES,
  maxFragments: MAX_FRAGMENTS,
  maxBufferedChunks: MAX_CHUNKS,
  skipUTF8Validation: true, // All is ASCII JSON, and the packet's own seal checks the rest.
  closeTimeout: CLOSE_GRACE_MS,
};

export const wsLinkPort: LinkPort = {
  connect: (url, events) => {
    const socket = new WebSocket(url, OPTIONS);
    let failure = "";
    socket.on("open", () => events.opened());
    socket.on("message", (data, isBinary) => {
      if (!isBinary) events.received(data.toString());
    });
    socket.on("error", (error) => {
      failure = error.message;
    });
    socket.on("close", (code, reason) => events.closed(code, reason.toString() || failure));
    return {
      send: (text) => {
        if (socket.readyState === WebSocket.OPEN) socket.send(text, ignoreLateError);
      },
      close: (code, reason) => {
        if (socket.readyState === WebSocket.CONNECTING) {
          socket.terminate();
          return;
        }
        socket.close(code, reason);
        setTimeout(() => socket.terminate(), CLOSE_GRACE_MS).unref();
      },
    };
  },
};

/** A send that fails is followed by `close`, which tells the core. */
const ignoreLateError = (): void => undefined;
