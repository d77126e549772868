import type { IncomingMessage } from "node:http";
import { expect, test } from "vitest";
import { acceptance, handshakeFault } from "./handshake.ts";

/** The request of RFC 6455 section 1.3, with changes. */
const request = (
  headers: Record<string, string | undefined> = {},
  method = "GET",
  httpVersion = "1.1",
) =>
  ({
    method,
    httpVersion,
    headers: {
      "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==",
      "sec-websocket-version": "13",
      ...headers,
    },
  }) as unknown as IncomingMessage;

test("gives the RFC's answer to its key, and chooses the first subprotocol offered", () => {
  expect(handshakeFault(request())).toBeNull();
  expect(acceptance(request())).toBe(
    "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n",
  );
  const offer = request({
    "sec-websocket-protocol": "chat, superchat",
    "sec-websocket-extensions": "permessage-deflate",
  });
  expect(handshakeFault(offer)).toBeNull();
  expect(acceptance(offer)).toMatch(/Protocol: chat\r\n\r\n$/);
  expect(acceptance(offer)).not.toContain("deflate");
});

test("an empty body is none", () => {
  expect(handshakeFault(request({ "content-length": "0" }))).toBeNull();
  expect(handshakeFault(request({ "content-length": "000" }))).toBeNull();
});

test.each([
  ["a body", request({ "content-length": "1" }), "BAD_REQUEST"],
  ["a body in chunks", request({ "transfer-encoding": "chunked" }), "BAD_REQUEST"],
  ["an unknown encoding", request({ "transfer-encoding": "" }), "BAD_REQUEST"],
  ["two lengths", request({ "content-length": "0, 0" }), "BAD_REQUEST"],
  ["an older HTTP", request({}, "GET", "1.0"), "BAD_REQUEST"],
  ["another method", request({}, "POST"), "METHOD_NOT_ALLOWED"],
  ["another version", request({ "sec-websocket-version": "8" }), "UPGRADE_REQUIRED"],
  ["no version", request({ "sec-websocket-version": undefined }), "UPGRADE_REQUIRED"],
  ["no key", request({ "sec-websocket-key": undefined }), "BAD_REQUEST"],
  ["a short key", request({ "sec-websocket-key": "dGhlIHNhbXBsZQ==" }), "BAD_REQUEST"],
  ["a subprotocol twice", request({ "sec-websocket-protocol": "a, a" }), "BAD_REQUEST"],
  ["a line break", request({ "sec-websocket-protocol": "a\r\nSet-Cookie: x" }), "BAD_REQUEST"],
])("refuses %s", (_, bad, code) => {
  expect(handshakeFault(bad)).toMatchObject({ code });
});
