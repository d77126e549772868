import { describe, expect, test } from "vitest";
import { encodeUpgrade, makeKey, UpgradeReader } from "./upgrade.ts";

const KEY = "dGhlIHNhbXBsZSBub25jZQ=="; // RFC 6455, section 1.3
const GOOD = [
  "HTTP/1.1 101 Switching Protocols",
  "Upgrade: websocket",
  "Connection: Upgrade",
  "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=",
];

function answer(lines: string[]): Buffer {
  return Buffer.from(`${lines.join("\r\n")}\r\n\r\n`);
}

describe("the answer to an upgrade", () => {
  test("passes, and what follows the head is passed on", () => {
    const result = new UpgradeReader(KEY).push(
      Buffer.concat([answer(GOOD), Buffer.from("frames")]),
    );
    expect(result).toEqual({ kind: "upgraded", rest: Buffer.from("frames") });
  });

  test("may come byte by byte, with headers in any case and more of them", () => {
    const reader = new UpgradeReader(KEY);
    const bytes = answer([
      GOOD[0] as string,
      "date: today",
      "UPGRADE: WebSocket",
      "connection: keep-alive, upgrade",
      GOOD[3] as string,
    ]);
    const results = [...bytes].map((byte) => reader.push(Buffer.of(byte)).kind);
    expect(results.slice(0, -1).every((kind) => kind === "more")).toBe(true);
    expect(results.at(-1)).toBe("upgraded");
  });

  test.each([
    ["another status", ["HTTP/1.1 426 Upgrade Required"], "HTTP 426 to the upgrade"],
    ["another protocol", ["SSH-2.0-OpenSSH"], "an answer that is not HTTP/1.1"],
    ["no Upgrade", GOOD.toSpliced(1, 1), "no Upgrade: websocket in the answer"],
    ["no Connection", GOOD.toSpliced(2, 1), "no Connection: Upgrade in the answer"],
    ["no accept", GOOD.toSpliced(3, 1), "a wrong Sec-WebSocket-Accept in the answer"],
    [
      "a wrong accept",
      GOOD.with(3, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOp="),
      "a wrong Sec-WebSocket-Accept in the answer",
    ],
    ["two accepts", [...GOOD, GOOD[3] as string], "a wrong Sec-WebSocket-Accept in the answer"],
    [
      "an extension",
      [...GOOD, "Sec-WebSocket-Extensions: permessage-deflate"],
      "an extension nobody offered",
    ],
    ["a subprotocol", [...GOOD, "Sec-WebSocket-Protocol: chat"], "a subprotocol nobody offered"],
  ])("with %s is refused", (_, lines, reason) => {
    expect(new UpgradeReader(KEY).push(answer(lines))).toEqual({ kind: "refused", reason });
  });

  test("without an end is refused at 8 KiB", () => {
    const reader = new UpgradeReader(KEY);
    expect(reader.push(Buffer.alloc(8191, "x")).kind).toBe("more");
    expect(reader.push(Buffer.alloc(1, "x")).kind).toBe("refused");
  });
});

test("the request contains what section 4.1 requires and offers nothing", () => {
  expect(encodeUpgrade(new URL("ws://127.0.0.1:8080/wss?a=1"), KEY)).toBe(
    "GET /wss?a=1 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
      "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n",
  );
  expect(makeKey()).toMatch(/^[A-Za-z0-9+/]{22}==$/);
});
