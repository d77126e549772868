/**
 * Limits how long a request may be idle and how long its body may take. Uploads may take as long as
 * they need (`streams`); any other body has at most 64 KiB.
 */
import type { IncomingMessage, Server } from "node:http";
import type { FastifyInstance } from "fastify";
import { contained } from "../../base/contain.ts";
import { endWithProblem, HttpProblem } from "../base/problem.ts";

/** A connection that is idle for this long while a request is in progress is closed. */
const IDLE_TIMEOUT_MS = 60_000;
/** 64 KiB at 2 KB/s. */
const BODY_TIMEOUT_MS = 30_000;

const tooSlow = (): HttpProblem =>
  new HttpProblem("BAD_REQUEST", "The body took too long to arrive.");

const endSlowBody = contained(
  "request",
  "a slow body did not end",
  (request: IncomingMessage) => {
    if (!request.complete) endWithProblem(request.socket, tooSlow());
  },
  ({ socket }) => void socket.destroy(),
);

/** Call it before the routes are registered. */
export const limitBodies = (
  app: Pick<FastifyInstance, "addHook">,
  timeoutMs = BODY_TIMEOUT_MS,
): void => {
  app.addHook("onRequest", async ({ raw, routeOptions }) => {
    if (raw.complete || routeOptions.config?.streams === true) return;
    const { "content-length": length = "0", "transfer-encoding": encoding } = raw.headers;
    if (length === "0" && encoding === undefined) return;
    const timer = setTimeout(endSlowBody, timeoutMs, raw);
    timer.unref();
    raw.once("close", () => clearTimeout(timer));
  });
};

/**
 * Applies from the first request on; before it, node's `headersTimeout` closes silent connections.
 * A timer from the start of the connection would remain on a link, and cost time at each of its
 * messages.
 */
export const limitIdleness = (server: Server): void => {
  server.headersTimeout = IDLE_TIMEOUT_MS;
  const limit = ({ socket }: IncomingMessage) => socket.setTimeout(IDLE_TIMEOUT_MS);
  const end = ({ socket }: IncomingMessage) => void socket.destroy();
  server.on("request", contained("request", "a request may be idle", limit, end));
};
