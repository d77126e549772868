/**
 * The client's half of the opening handshake of RFC 6455 (section 4): the request, and a bounded
 * reader for the answer. No sockets. No extension or subprotocol is ever offered, so an answer that
 * grants one is refused.
 */
import { createHash, randomBytes } from "node:crypto";

const ACCEPT_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"; // section 1.3
const MAX_HEAD_BYTES = 8192;
const HEAD_END = "\r\n\r\n";

export type UpgradeResult =
  | { kind: "more" }
  /**
   * `rest`: bytes after the head in the same chunk; they are frames. Valid as long as the chunk.
   */
  | { kind: "upgraded"; rest: Buffer }
  | { kind: "refused"; reason: string };

/** A fresh `Sec-WebSocket-Key`: 16 random bytes as base64. */
export function makeKey(): string {
  return randomBytes(16).toString("base64");
}

/** The request's text for `url` (`ws://host:port/path?query`). */
export function encodeUpgrade(url: URL, key: string): string {
  return (
    `GET ${url.pathname}${url.search} HTTP/1.1\r\nHost: ${url.host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n` +
    `Sec-WebSocket-Key: ${key}\r\nSec-WebSocket-Version: 13${HEAD_END}`
  );
}

/** Reads the answer to one upgrade request from chunks of any size. */
export class UpgradeReader {
  private readonly key: string;
  private head = "";

  constructor(key: string) {
    this.key = key;
  }

  push(chunk: Buffer): UpgradeResult {
    const before = this.head.length;
    this.head += chunk.toString("latin1", 0, MAX_HEAD_BYTES);
    const end = this.head.indexOf(HEAD_END, Math.max(0, before - HEAD_END.length));
    if (end < 0 && this.head.length < MAX_HEAD_BYTES) return { kind: "more" };
    if (end < 0 || end > MAX_HEAD_BYTES)
      return { kind: "refused", reason: "an answer with an endless head" };
    const reason = whyRefused(this.head.slice(0, end), this.key);
    if (reason !== null) return { kind: "refused", reason };
    return { kind: "upgraded", rest: chunk.subarray(end + HEAD_END.length - before) };
  }
}

/** The checks of section 4.1, steps 1 to 6; null if the head passes them all. */
function whyRefused(head: string, key: string): string | null {
  const lines = head.split("\r\n");
  const status = /^HTTP\/1\.1 ([0-9]{3})(?: |$)/.exec(lines[0] ?? "")?.[1];
  if (status === undefined) return "an answer that is not HTTP/1.1";
  if (status !== "101") return `HTTP ${status} to the upgrade`;
  const headers = new Map<string, string>();
  for (const line of lines.slice(1)) {
    const colon = line.indexOf(":");
    const name = line.slice(0, colon).toLowerCase();
    const value = line.slice(colon + 1).trim();
    const earlier = headers.get(name);
    headers.set(name, earlier === undefined ? value : `${earlier}, ${value}`);
  }
  if (headers.get("upgrade")?.toLowerCase() !== "websocket")
    return "no Upgrade: websocket in the answer";
  const connection = headers.get("connection")?.toLowerCase().split(",") ?? [];
  if (!connection.some((token) => token.trim() === "upgrade"))
    return "no Connection: Upgrade in the answer";
  const accept = createHash("sha1")
    .update(key + ACCEPT_GUID)
    .digest("base64");
  if (headers.get("sec-websocket-accept") !== accept)
    return "a wrong Sec-WebSocket-Accept in the answer";
  if (headers.has("sec-websocket-extensions")) return "an extension nobody offered";
  if (headers.has("sec-websocket-protocol")) return "a subprotocol nobody offered";
  return null;
}
