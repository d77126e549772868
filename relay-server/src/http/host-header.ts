/**
 * Detects a request with two Host headers, which a proxy and the relay could read differently (RFC
 * 9112 section 3.2).
 */
import type { IncomingMessage } from "node:http";
import { HttpProblem } from "./base/problem.ts";

/** node keeps the first one silently. */
export const hasTwoHosts = ({ rawHeaders }: IncomingMessage): boolean => {
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    if ((rawHeaders[i] as string).toLowerCase() === "host") hosts += 1;
  }
  return hosts > 1;
};

export const twoHosts = (): HttpProblem =>
  new HttpProblem("BAD_REQUEST", "A request must have exactly one Host header.");
