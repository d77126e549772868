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
import { contained } from "../base/contain.ts";
import { endWithProblem, type HttpProblem, passingProblem } from "../http/base/problem.ts";
import { hasOneHost, notOneHost } from "../http/host-header.ts";
import { acceptSocket } from "./connection.ts";
import { acceptance, handshakeFault } from "./handshake.ts";
import { HeldBytes } from "./held-bytes.ts";
import type { RunningHub } from "./hub-driver.ts";
import { YoungBuffers } from "./young-buffers.ts";

/** By then most waiting peers have been accepted or refused. */
const RETRY_AFTER_S = 10;

interface UpgradeOptions {
  /** The address that failures are counted for; see http/base/client-address.ts. */
  addressOf: (request: IncomingMessage) => string;
  /** Called with each socket that becomes a link. */
  linked: (socket: Socket) => void;
  /** Whether a response to an earlier request is still to be written to the socket. */
  isAnswering: (socket: Socket) => boolean;
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
  const { addressOf, linked, isAnswering, ...limits } = options;
  const [heldBytes, young] = [new HeldBytes(), new YoungBuffers()];
  const edge = { ...limits, running, heldBytes, young, chunks: 0, now: 0 };
  // An option of node's createServer; setting it here works however the server was created.
  Object.assign(server, {
    // Else the response to an earlier request would end up between the frames.
    shouldUpgradeCallback: (request: IncomingMessage) =>
      wantsLink(request) && !isAnswering(request.socket),
  });
  const take = (request: IncomingMessage, stream: Duplex, head: Buffer): void => {
    // The stream is another one while a body has not arrived, which is refused.
    const { socket } = request;
    const address = addressOf(request);
    const problem = hasOneHost(request)
      ? (handshakeFault(request) ?? (running.hub.hasRoom(address) ? null : crowded()))
      : notOneHost();
    if (problem !== null) {
      for (const each of [socket, stream]) each.on("error", ignore); // nobody is left to tell
      endWithProblem(socket, problem);
    } else if (!socket.readable || !socket.writable) {
      socket.destroy(); // the peer has left
    } else {
      linked(socket);
      socket.write(acceptance(request));
      acceptSocket(edge, socket, head, address);
    }
  };
  const end = ({ socket }: IncomingMessage): void => void socket.destroy();
  server.on("upgrade", contained("connection", "an upgrade failed", take, end));
};

const crowded = (): HttpProblem =>
  passingProblem(
    "UNAVAILABLE",
    "Too many connections from this address wait to authenticate.",
    RETRY_AFTER_S,
  );

const ignore = (): void => undefined;

/** A target may be a whole URL (RFC 9112, section 3.2.2). */
const wantsLink = ({ url = "", headers }: IncomingMessage): boolean => {
  const [path] = url.replace(/^https?:\/\/[^/?]*/i, "").split("?") as [string];
  return decoded(path) === WSS_PATH && headers.upgrade?.toLowerCase() === "websocket";
};

/** As the routes of http/ are, so that both mean the same path (RFC 3986, section 6.2.2.2). */
const decoded = (path: string): string | null => {
  try {
    return decodeURI(path);
  } catch {
    return null; // the routes answer it
  }
};
