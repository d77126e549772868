/**
 * Limits how long a request may be idle, how long its body may take, and how many connections
 * without a link may be open. Uploads may take as long as they need (`streams`); any other body has
 * at most 64 KiB.
 */
import type { IncomingMessage, Server } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { endWithProblem, HttpProblem } from "../base/problem.ts";

/** A connection that is idle for this long while a request is in progress is closed. */
const IDLE_TIMEOUT_MS = 60_000;
/** 64 KiB at 2 KB/s. */
const BODY_TIMEOUT_MS = 30_000;
/**
 * About 65 MB of idle sockets; a fleet that reconnects at once has links, which are not counted.
 */
const MAX_CONNECTIONS = 16_384;

/** Call it before the routes are registered. */
export const limitBodies = (
  app: Pick<FastifyInstance, "addHook">,
  timeoutMs = BODY_TIMEOUT_MS,
): void => {
  app.addHook("onRequest", async ({ raw, routeOptions }) => {
    if (raw.complete || routeOptions.config?.streams === true) return;
    const { "content-length": length = "0", "transfer-encoding": encoding } = raw.headers;
    if (length === "0" && encoding === undefined) return;
    const timer = setTimeout(() => {
      if (!raw.complete) endWithProblem(raw.socket, tooSlow());
    }, timeoutMs);
    timer.unref();
    raw.once("close", () => clearTimeout(timer));
  });
};

const tooSlow = (): HttpProblem =>
  new HttpProblem("BAD_REQUEST", "The body took too long to arrive.");

/**
 * Applies from the first request on; before it, node's `headersTimeout` closes silent connections.
 * A timer from the start of the connection would remain on a link, and cost time at each of its
 * messages.
 */
export const limitIdleness = (server: Server): void => {
  server.headersTimeout = IDLE_TIMEOUT_MS;
  server.on("request", ({ socket }: IncomingMessage) => socket.setTimeout(IDLE_TIMEOUT_MS));
};

/**
 * Beyond the limit, the connection that has been open longest without becoming a link is closed, so
 * a host that holds silent connections does not lock out others. Links have their own limits.
 */
export const limitConnections = (server: Server, max = MAX_CONNECTIONS): void => {
  const open = new Set<Socket>();
  // One function for all, not kept by links: a closure each would exist ten thousand times.
  function forget(this: Socket): void {
    open.delete(this);
  }
  const begins = "secureConnection" in server ? "secureConnection" : "connection";
  server.on(begins, (socket: Socket) => {
    if (open.size >= max) {
      const [oldest] = open;
      open.delete(oldest as Socket);
      oldest?.destroy();
    }
    open.add(socket);
    socket.on("close", forget);
  });
  server.on("upgrade", (_request, socket: Socket) => {
    open.delete(socket);
    socket.off("close", forget);
  });
};
