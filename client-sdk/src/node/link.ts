/** The link port over `ws`. */
import { CLOSE_GRACE_MS, WS_OPTIONS } from "@blindrelay/protocol/ws-options";
import { WebSocket } from "ws";
import type { LinkPort } from "../ports.ts";

/** Everything is ASCII JSON, and the packet's own seal protects the rest. */
const OPTIONS = { ...WS_OPTIONS, skipUTF8Validation: true };

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
