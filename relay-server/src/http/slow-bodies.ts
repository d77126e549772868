/**
 * How long a request's body may take, and how many connections may be open on which no link is.
 * Uploads take as long as their bytes do (`streams`); any other body is 64 KiB at the most.
 */
import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { FastifyInstance } from "fastify";
import { endWithProblem, HttpProblem } from "./problem.ts";

/** 64 KiB at 2 KB/s. */
const BODY_TIMEOUT_MS = 30_000;
/**
 * About 65 MB of idle sockets; a fleet that comes back at once has links, which are not counted.
 */
const MAX_CONNECTIONS = 16_384;

/** Call it before the routes are there. */
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
 * Over the cap, the connection that has been open longest without becoming a link is closed, so one
 * host that holds silent connections keeps nobody else out. Links have limits of their own.
 */
export const limitConnections = (server: Server, max = MAX_CONNECTIONS): void => {
  const open = new Set<Socket>();
  const begins = "secureConnection" in server ? "secureConnection" : "connection";
  server.on(begins, (socket: Socket) => {
    if (open.size >= max) {
      const [oldest] = open;
      open.delete(oldest as Socket);
      oldest?.destroy();
    }
    open.add(socket);
    socket.once("close", () => open.delete(socket));
  });
  server.on("upgrade", (_request, socket: Socket) => open.delete(socket));
};
