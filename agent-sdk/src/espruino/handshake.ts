/**
 * The opening of a WebSocket (RFC 6455 section 4): the address, the request, and the check of its
 * answer. Separate from the frames, because a board keeps it in RAM only while it is used.
 *
 * [portable]
 */
import { toBase64url } from "@blindrelay/protocol/crypto";
import type { EspruinoCrypto } from "./board.ts";

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // section 1.3

export interface Target {
  readonly secure: boolean;
  readonly host: string;
  readonly port: number;
  readonly path: string;
}

/** `ws://host[:port]/path`, or wss; null for anything else. */
export const parseUrl = (url: string): Target | null => {
  const secure = url.substring(0, 6) === "wss://";
  if (!secure && url.substring(0, 5) !== "ws://") return null;
  const rest = url.substring(secure ? 6 : 5);
  const slash = rest.indexOf("/");
  const authority = slash < 0 ? rest : rest.substring(0, slash);
  const colon = authority.lastIndexOf(":");
  const hasPort = colon > authority.lastIndexOf("]");
  const port = hasPort ? parseInt(authority.substring(colon + 1), 10) : secure ? 443 : 80;
  const host = hasPort ? authority.substring(0, colon) : authority;
  if (host === "" || !(port > 0 && port < 65536)) return null;
  return { secure: secure, host: host, port: port, path: slash < 0 ? "/" : rest.substring(slash) };
};

/** base64 with padding, as required by the handshake. */
export const base64 = (bytes: Uint8Array): string => {
  const text = toBase64url(bytes).replace(/-/g, "+").replace(/_/g, "/");
  return text + "==".substring(0, (4 - (text.length & 3)) & 3);
};

export const handshakeRequest = (target: Target, key: string): string =>
  `GET ${target.path} HTTP/1.1\r\nHost: ${target.host}:${target.port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13\r\n\r\n`;

const headerOf = (head: string, name: string): string => {
  for (const line of head.split("\r\n")) {
    const colon = line.indexOf(":");
    if (colon > 0 && line.substring(0, colon).toLowerCase() === name)
      return line.substring(colon + 1).trim();
  }
  return "";
};

/** Why the head of the server's response is invalid; null if it accepts `key`. */
export const handshakeProblem = (
  head: string,
  key: string,
  crypto: EspruinoCrypto,
): string | null => {
  const end = head.indexOf("\r\n");
  const status = end < 0 ? head : head.substring(0, end);
  if (status.indexOf(" 101") < 0) return `no upgrade: ${status.substring(0, 60)}`;
  const accept = base64(new Uint8Array(crypto.SHA1(key + ACCEPT_GUID)));
  return headerOf(head, "sec-websocket-accept") === accept ? null : "wrong accept";
};
