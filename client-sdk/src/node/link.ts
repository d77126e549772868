/** The link port over `ws`. */
import { MAX_MESSAGE_BYTES } from "@blindrelay/protocol";
import { type ClientOptions, WebSocket } from "ws";
import type { LinkPort } from "../ports.ts";

/** A relay that does not answer a close is left after this long. */
const CLOSE_GRACE_MS = 1_000;

/** `closeTimeout` is also for what ws closes itself: a message over the limit, a protocol error. */
const OPTIONS: ClientOptions & { closeTimeout: number } = {
  perMessageDeflate: false,
  maxPayload: MAX_MESSAGE_BYTES,
  skipUTF8Validation: true, // All is ASCII JSON, and the packet's own seal checks the rest.
  closeTimeout: CLOSE_GRACE_MS, // which @types/ws does not know
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
