/**
 * The relay's side of the link conformance suite over a real `ws` server, for every edge with
 * sockets.
 */
import type { WebSocketServer } from "ws";
import type { RelaySide } from "./conformance/link.ts";

/** One side for each connection that the server accepts, in order; it grows with each. */
export const relaySides = (server: WebSocketServer): RelaySide[] => {
  const relays: RelaySide[] = [];
  server.on("connection", (socket) => {
    const received: string[] = [];
    let closedWith: number | null = null;
    socket.on("message", (data) => received.push(data.toString()));
    socket.on("close", (code) => {
      closedWith = code;
    });
    relays.push({
      received,
      get closedWith() {
        return closedWith;
      },
      send: (text) => socket.send(text),
      close: (code, reason) => socket.close(code, reason),
    });
  });
  return relays;
};
