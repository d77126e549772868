/**
 * Detects a request with two Host headers, which a proxy and the relay could read differently, and
 * one with none (RFC 9112 section 3.2).
 */
import type { IncomingMessage } from "node:http";
import { HttpProblem } from "./base/problem.ts";

const countHosts = (rawHeaders: readonly string[]): number => {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if ((rawHeaders[i] as string).toLowerCase() === "host") hosts += 1;
  }
  return hosts;
};

/** node keeps the first one silently. */
export const hasOneHost = ({ rawHeaders }: IncomingMessage): boolean =>
  countHosts(rawHeaders) === 1;

/** For requests other than upgrades: before HTTP/1.1 one may have no Host. */
export const lacksOneHost = (request: IncomingMessage): boolean =>
  request.httpVersion === "1.1" ? !hasOneHost(request) : countHosts(request.rawHeaders) > 1;

export const notOneHost = (): HttpProblem =>
  new HttpProblem("BAD_REQUEST", "A request must have exactly one Host header.");
