/**
 * Limits how many requests of one connection may wait for their responses. An HTTP client may send
 * the next request before the last one is answered; node accepts each as fast as its bytes arrive,
 * and each takes kilobytes until it is answered, so one connection could fill the memory within
 * seconds.
 */
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { endWithProblem, type HttpProblem, passingProblem } from "../base/problem.ts";
import { guardRequests } from "./guard-requests.ts";

/** Real clients send one at a time; a client that sends a few at once is still served. */
const MAX_UNANSWERED = 8;

/**
 * Ends a connection that sends one more. Call it after the server's own listener was added. The
 * returned function knows whether a connection waits for a response.
 */
export const limitPipelining = (server: Server): ((socket: Socket) => boolean) => {
  const unanswered = new WeakMap<Socket, Set<ServerResponse>>();
  const admit = (socket: Socket, response: ServerResponse): boolean => {
    const waiting = unanswered.get(socket) ?? new Set();
    if (waiting.size < MAX_UNANSWERED) {
      unanswered.set(socket, waiting.add(response));
      response.once("close", () => waiting.delete(response));
      return true;
    }
    const [oldest] = waiting;
    if (oldest?.headersSent === false) endWithProblem(socket, tooMany());
    socket.destroy();
    return false;
  };
  guardRequests(server, ({ socket }, response, pass) => {
    if (!socket.destroyed && admit(socket, response)) pass();
  });
  return (socket) => (unanswered.get(socket)?.size ?? 0) > 0;
};

const tooMany = (): HttpProblem =>
  passingProblem(
    "RATE_LIMITED",
    `More than ${MAX_UNANSWERED} requests of this connection wait: send the next when one is answered.`,
    1,
  );
