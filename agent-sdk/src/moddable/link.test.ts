/**
 * What the shared conformance tests cannot provoke: a client's message parts, limits and failures,
 * one by one.
 */
import { PONG_TEXT } from "@blindrelay/protocol/wire";
import { expect, it } from "vitest";
import { ManualTimer } from "../memory/index.ts";
import { ecmaLinks } from "./link.ts";
import type { EcmaWebSocket, EcmaWebSocketOptions } from "./sdk.ts";
import { parseAddress } from "./url.ts";

const MAX_MESSAGE = 100;

/** A client that does nothing by itself; the test controls it. */
class Scripted implements EcmaWebSocket {
  static last: Scripted;
  readonly options: EcmaWebSocketOptions;
  readonly written: string[] = [];
  room = 1000;
  closed = 0;
  private next = "";

  constructor(options: EcmaWebSocketOptions) {
    this.options = options;
    Scripted.last = this;
  }

  allow(bytes: number): void {
    this.room = bytes;
    this.options.onWritable(bytes);
  }

  hear(part: string, more: boolean, binary = false): void {
    this.next = part;
    this.options.onReadable(part.length, { more, binary });
  }

  read(count: number): ArrayBuffer | undefined {
    const bytes = new TextEncoder().encode(this.next.substring(0, count));
    return bytes.length === 0 ? undefined : bytes.buffer;
  }

  write(data: Uint8Array, options: { more?: boolean; opcode?: number }): number {
    if (data.length > this.room) throw new Error("does not fit");
    const text = new TextDecoder("latin1").decode(data);
    this.written.push(
      options.opcode === undefined ? `${text}${options.more ? "+" : ""}` : `[${options.opcode}]`,
    );
    this.room -= data.length;
    return this.room;
  }

  close(): void {
    this.closed++;
  }
}

const open = () => {
  const timer = new ManualTimer();
  const log: string[] = [];
  const port = ecmaLinks({ ws: { io: Scripted }, wss: null, timer, maxMessage: MAX_MESSAGE });
  const link = port.connect("ws://relay.test/wss", {
    opened: () => log.push("opened"),
    received: (text) => log.push(text),
    closed: (code, reason) => log.push(`closed ${code} ${reason}`),
  });
  timer.advance(0);
  const client = Scripted.last;
  client.allow(1000);
  return { link, log, timer, client };
};

it("joins the parts of a message, even if the last one is empty", () => {
  const { log, client } = open();
  client.hear("one", true);
  client.hear(" and", true);
  client.hear(" two", false);
  client.hear("three", true);
  client.hear("", false);
  expect(log).toEqual(["opened", "one and two", "three"]);
});

it("ignores binary messages, in parts too", () => {
  const { log, client } = open();
  client.hear("bin", true, true);
  client.hear("ary", false, true);
  client.hear("text", false);
  expect(log).toEqual(["opened", "text"]);
});

it("closes with 1009 on a message over the limit, before buffering it, and receives no more", () => {
  const { log, client, timer } = open();
  client.hear("x".repeat(MAX_MESSAGE), true);
  client.hear("x", true);
  client.hear("late", false);
  expect(client.written).toEqual(["[8]"]);
  timer.advance(5000);
  expect(log).toEqual(["opened", "closed 1009 message too large"]);
  expect(client.closed).toBe(1);
});

it("queues one pong for any number of pings while the socket accepts nothing", () => {
  const { link, client } = open();
  client.allow(0);
  for (let n = 0; n < 1000; n++) link.send(PONG_TEXT);
  link.send("another");
  expect(link.queuedBytes?.()).toBe(PONG_TEXT.length + 7);
});

it("sends a long message in parts, as the socket accepts them, and in order", () => {
  const { link, client } = open();
  client.allow(4);
  link.send("abcdef");
  link.send("gh");
  expect(client.written).toEqual(["abcd+"]);
  expect(link.queuedBytes?.()).toBe(4);
  client.allow(3);
  client.allow(3);
  expect(client.written).toEqual(["abcd+", "ef", "g+", "h"]);
  expect(link.queuedBytes?.()).toBe(0);
});

it("closes between the parts of a message, and waits at most for its grace period", () => {
  const { link, log, client, timer } = open();
  client.allow(2);
  link.send("abcdef");
  link.close(4000, "enough");
  expect(client.written).toEqual(["ab+"]);
  client.allow(100);
  expect(client.written).toEqual(["ab+", "[8]"]);
  timer.advance(60_000);
  expect(log).toEqual(["opened", "closed 4000 enough"]);
});

it("reports one closed for a write that throws, not from inside send", () => {
  const { link, log, client, timer } = open();
  client.room = 0;
  link.send("x");
  link.send("y");
  expect(log).toEqual(["opened"]);
  timer.advance(0);
  client.options.onError();
  expect(log).toEqual(["opened", "closed 1006 Error: does not fit"]);
});

it("reports closed for a constructor that throws", () => {
  const timer = new ManualTimer();
  const log: number[] = [];
  class Broken extends Scripted {
    constructor(options: EcmaWebSocketOptions) {
      super(options);
      throw new Error("no Wi-Fi");
    }
  }
  const port = ecmaLinks({ ws: { io: Broken }, wss: null, timer, maxMessage: MAX_MESSAGE });
  port.connect("ws://relay.test/", {
    opened: () => {},
    received: () => {},
    closed: (code) => log.push(code),
  });
  expect(log).toEqual([]);
  timer.advance(0);
  expect(log).toEqual([1006]);
});

it.each([
  ["ws://relay.example", { secure: false, host: "relay.example", port: 80, path: "/wss" }],
  ["https://relay.example/", { secure: true, host: "relay.example", port: 443, path: "/wss" }],
  ["http://10.0.0.7:8080", { secure: false, host: "10.0.0.7", port: 8080, path: "/wss" }],
  [
    "wss://relay.example:8443/a/wss?x=1",
    { secure: true, host: "relay.example", port: 8443, path: "/a/wss?x=1" },
  ],
])("reads the address %s", (url, address) => {
  expect(parseAddress(url)).toEqual(address);
});

it.each([
  "",
  "relay.example",
  "ftp://relay.example",
  "ws://",
  "ws://a:0",
  "ws://a:65536",
  "ws://user@a",
  "ws://a b",
  "constructor://a",
])("refuses the address '%s'", (url) => {
  expect(parseAddress(url)).toBe(null);
});
