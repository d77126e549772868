/**
 * Handles upgrades to WebSocket on the path `/wss` of a node http server. Everything else is an
 * ordinary request, even if it offers another upgrade, as clients that prefer HTTP/2 do (curl
 * --http2, Java); the REST side answers a plain GET of the path with 426
 * (http/routes/upgrade-required.ts).
 */
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { WSS_PATH } from "@blindrelay/protocol";
import { endWithProblem, HttpProblem } from "../http/base/problem.ts";
import { hasTwoHosts, twoHosts } from "../http/host-header.ts";
import { acceptSocket } from "./connection.ts";
import { acceptance, handshakeFault } from "./handshake.ts";
import { HeldBytes } from "./held-bytes.ts";
import type { RunningHub } from "./hub-driver.ts";
import { YoungBuffers } from "./young-buffers.ts";

/** By then most waiting peers have been accepted or refused. */
const RETRY_AFTER_S = 10;

export interface UpgradeOptions {
  /** The address that failures are counted for; see http/base/client-address.ts. */
  addressOf: (request: IncomingMessage) => string;
  maxMessageBytes: number;
  ratePerSecond: number;
  rateBurst: number;
  outboxBytes: number;
}

/** Makes a server, listening or not, accept WebSockets for a hub. */
export const attachUpgrade = (
  server: Server,
  running: RunningHub,
  options: UpgradeOptions,
): void => {
  const { addressOf, ...limits } = options;
  const [heldBytes, young] = [new HeldBytes(), new YoungBuffers()];
  const edge = { ...limits, running, heldBytes, young, chunks: 0, now: 0 };
  // An option of node's createServer; setting it here works however the server was created.
  Object.assign(server, { shouldUpgradeCallback: wantsLink });
  server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const socket = stream as Socket; // node's http server passes the net or TLS socket itself
    const address = addressOf(request);
    const problem = hasTwoHosts(request)
      ? twoHosts()
      : (handshakeFault(request) ?? (running.hub.hasRoom(address) ? null : crowded()));
    if (problem !== null) {
      socket.on("error", () => undefined); // a peer that has left needs no answer
      endWithProblem(socket, problem);
    } else if (!socket.readable || !socket.writable) {
      socket.destroy(); // the peer has left
    } else {
      socket.write(acceptance(request));
      acceptSocket(edge, socket, head, address);
    }
  });
};

const crowded = (): HttpProblem =>
  new HttpProblem("UNAVAILABLE", "Too many connections from this address wait to authenticate.", {
    headers: { "retry-after": String(RETRY_AFTER_S) },
  });

const wantsLink = ({ url, headers }: IncomingMessage): boolean =>
  url?.split("?")[0] === WSS_PATH && headers.upgrade?.toLowerCase() === "websocket";
