/**
 * The yardstick: the minimum that a forwarder on `ws` can do, without authentication, limits or
 * queues. A connection's first message names its sid and its end; every later message is parsed,
 * looked up, and forwarded as received.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type RawData, type WebSocket, WebSocketServer } from "ws";

interface Ends {
  agent: WebSocket | null;
  client: WebSocket | null;
}

const ends = new Map<string, Ends>();
const server = createServer();
const sockets = new WebSocketServer({ server, perMessageDeflate: false });

sockets.on("connection", (socket) => {
  let side: keyof Ends | null = null;
  socket.on("message", (data: RawData) => {
    const message = JSON.parse(String(data));
    if (side !== null) {
      const other = side === "agent" ? "client" : "agent";
      ends.get(message.sid)?.[other]?.send(data, { binary: false });
      return;
    }
    side = message.side as keyof Ends;
    const pair = ends.get(message.sid) ?? { agent: null, client: null };
    pair[side] = socket;
    ends.set(message.sid, pair);
    socket.send("{}");
  });
});

server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => process.exit(0));
process.on("SIGINT", () => {});
