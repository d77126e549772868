/**
 * Puts a check before a server's listeners for requests: one that has reached the framework has
 * already cost most of what it will.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from "node:http";
import { contained } from "../../base/contain.ts";

/** Calls `pass`, now or later, for a request that may go on. */
type Guard = (request: IncomingMessage, response: ServerResponse, pass: () => void) => unknown;

const endRequest = ({ socket }: IncomingMessage): void => void socket.destroy();

/** Call it after the server's own listeners were added. The last guard is asked first. */
export const guardRequests = (server: Server, guard: Guard): void => {
  const listeners = server.listeners("request") as RequestListener[];
  server.removeAllListeners("request");
  const ask = (request: IncomingMessage, response: ServerResponse): unknown =>
    guard(request, response, () => {
      for (const listener of listeners) listener.call(server, request, response as never);
    });
  server.on("request", contained("request", "a request was not passed on", ask, endRequest));
};
