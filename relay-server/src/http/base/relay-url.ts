/** The relay's address: the configured one, or the one that the request used. */
import { WSS_PATH } from "@blindrelay/protocol";
import type { FastifyRequest } from "fastify";
import type { HttpContext } from "./context.ts";
import { HttpProblem } from "./problem.ts";

/** Written into files that shells and boards read, so only names, numbers and ports. */
const HOST = /^([A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?$/;

/** `http(s)://host:port` without a trailing slash. Throws a 400 if Host is not a host. */
export const httpBase = (context: HttpContext, request: FastifyRequest): string => {
  if (context.publicUrl !== null) return context.publicUrl.replace(/(?<!\/)\/+$/, "");
  if (!HOST.test(request.host) || !URL.canParse(`http://${request.host}`)) {
    throw new HttpProblem("BAD_REQUEST", "The Host header names no host.");
  }
  return `${request.protocol}://${request.host}`;
};

/** The address that firmware connects to. */
export const relayUrl = (context: HttpContext, request: FastifyRequest): string =>
  `${httpBase(context, request).replace(/^http/, "ws")}${WSS_PATH}`;
