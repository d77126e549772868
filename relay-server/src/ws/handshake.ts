/**
 * The relay's part of the opening handshake of RFC 6455 (section 4.2): the requirements for a
 * request, and the 101 that answers it. No extension is ever accepted: packets are sealed, and
 * sealed bytes do not compress.
 */
import { hash } from "node:crypto";
import type { IncomingMessage } from "node:http";
import * as ws from "ws";
import { HttpProblem } from "../http/base/problem.ts";

const VERSION = "13";
/** Section 1.3. */
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/** base64 of 16 bytes. */
const KEY = /^[+/0-9A-Za-z]{22}==$/;

/** Exported by ws, but missing from its types. Throws unless the header lists distinct tokens. */
const { parse: parseSubprotocols } = (
  ws as unknown as { subprotocol: { parse(header: string): Set<string> } }
).subprotocol;

/**
 * Whether a body was announced, arrived or not. What follows it could be read as another protocol
 * by a proxy than by the relay, and node passes a stream instead of the socket until it has
 * arrived.
 */
const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || !/^0+$/.test(headers["content-length"] ?? "0");

/** Why a request for an upgrade is refused; null if it is not. */
export const handshakeFault = (request: IncomingMessage): HttpProblem | null => {
  const { method, headers, httpVersion } = request;
  if (hasBody(request)) {
    return new HttpProblem("BAD_REQUEST", "A WebSocket begins with a request without a body.");
  }
  if (httpVersion !== "1.1") {
    return new HttpProblem("BAD_REQUEST", "A WebSocket begins with HTTP/1.1.");
  }
  if (method !== "GET") {
    return new HttpProblem("METHOD_NOT_ALLOWED", "A WebSocket begins with GET.", {
      headers: { allow: "GET" },
    });
  }
  if (headers["sec-websocket-version"] !== VERSION) {
    // Section 4.4. No standard describes version 8, which ws would accept too.
    return new HttpProblem("UPGRADE_REQUIRED", `This path requires WebSocket version ${VERSION}.`, {
      headers: { "sec-websocket-version": VERSION, upgrade: "websocket" },
    });
  }
  if (!KEY.test(headers["sec-websocket-key"] ?? "")) {
    return new HttpProblem("BAD_REQUEST", "Sec-WebSocket-Key must be base64 of 16 bytes.");
  }
  try {
    subprotocolOf(request);
  } catch {
    return new HttpProblem("BAD_REQUEST", "Sec-WebSocket-Protocol must list distinct tokens.");
  }
  return null;
};

/** The answer to a valid request. */
export const acceptance = (request: IncomingMessage): string => {
  const accept = hash("sha1", request.headers["sec-websocket-key"] + GUID, "base64");
  const subprotocol = subprotocolOf(request);
  return [
    "HTTP/1.1 101 Switching Protocols",
    "Upgrade: websocket",
    "Connection: Upgrade",
    `Sec-WebSocket-Accept: ${accept}`,
    ...(subprotocol === null ? [] : [`Sec-WebSocket-Protocol: ${subprotocol}`]),
    "\r\n",
  ].join("\r\n");
};

/** The first one offered: some browsers that offer any fail if none is chosen. */
const subprotocolOf = ({ headers }: IncomingMessage): string | null => {
  const offered = headers["sec-websocket-protocol"];
  if (offered === undefined) return null;
  const [first] = parseSubprotocols(offered);
  return first ?? null;
};
