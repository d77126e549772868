/**
 * The door of `/wss`: takes upgrades to WebSocket of a node http server, on this one path. All else
 * is an ordinary request, also where it offers another upgrade, as clients that would rather speak
 * HTTP/2 do (curl --http2, Java); a plain GET of the path is answered 426 by the REST side
 * (http/wss.ts).
 */
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { MAX_FRAGMENTS, WSS_PATH } from "@blindrelay/protocol";
import { WebSocketServer } from "ws";
import { hasTwoHosts, twoHosts } from "../http/hosts.ts";
import { endWithProblem, HttpProblem } from "../http/problem.ts";
import { acceptSocket, RelaySocket } from "./connection.ts";
import { HeldBytes } from "./held-bytes.ts";
import type { RunningHub } from "./hub-driver.ts";

/** How long a peer may take to answer a close; a shutdown, and a slow peer's queue, wait for it. */
const CLOSE_TIMEOUT_MS = 5000;
/** ws would take 8 too, which no standard describes. */
const VERSION = "13";
/** By then those who wait have mostly got in, or were sent away. */
const RETRY_AFTER_S = 10;

export interface UpgradeOptions {
  /** The address that failures are counted under; see http/address.ts. */
  addressOf: (request: IncomingMessage) => string;
  maxMessageBytes: number;
}

/** Lets a server, listening or not, take WebSockets for a hub. */
export const attachUpgrade = (
  server: Server,
  running: RunningHub,
  options: UpgradeOptions,
): void => {
  const { addressOf, maxMessageBytes } = options;
  const settings = {
    noServer: true,
    WebSocket: RelaySocket,
    clientTracking: false,
    perMessageDeflate: false,
    // The frame filter lets one byte more than the limit through, and the hub answers TOO_LARGE.
    maxPayload: maxMessageBytes + 1,
    maxFragments: MAX_FRAGMENTS, // the frame filter counts them too, and says why it closes
    // The hub answers BAD_MESSAGE to what is not UTF-8; ws would close.
    skipUTF8Validation: true,
    closeTimeout: CLOSE_TIMEOUT_MS, // which @types/ws does not know
  };
  const upgrades = new WebSocketServer(settings);
  const reading = { maxMessageBytes, heldBytes: new HeldBytes() };
  // An option of node's createServer; set here it is there however the server was made.
  Object.assign(server, { shouldUpgradeCallback: wantsLink });
  server.on("upgrade", (request: IncomingMessage, stream: Duplex, head: Buffer) => {
    const socket = stream as Socket; // node's http server hands over the net or TLS socket itself
    const address = addressOf(request);
    const problem = hasTwoHosts(request)
      ? twoHosts()
      : request.headers["sec-websocket-version"] !== VERSION
        ? otherVersion()
        : running.hub.hasRoom(address)
          ? null
          : crowded();
    if (problem !== null) {
      socket.on("error", () => undefined); // whoever is gone already needs no answer
      endWithProblem(socket, problem);
      return;
    }
    upgrades.handleUpgrade(request, socket, head, (ws) => {
      acceptSocket(running, ws, socket, address, reading);
    });
  });
};

/** RFC 6455 section 4.4. */
const otherVersion = (): HttpProblem =>
  new HttpProblem("UPGRADE_REQUIRED", `This path speaks version ${VERSION} of WebSocket.`, {
    headers: { "sec-websocket-version": VERSION, upgrade: "websocket" },
  });

const crowded = (): HttpProblem =>
  new HttpProblem("UNAVAILABLE", "Too many connections from this address wait to authenticate.", {
    headers: { "retry-after": String(RETRY_AFTER_S) },
  });

const wantsLink = ({ url, headers }: IncomingMessage): boolean =>
  url?.split("?")[0] === WSS_PATH && headers.upgrade?.toLowerCase() === "websocket";
