/**
 * The board's WebSocket client on Node, tested with `ws`, the conformance suite and handwritten
 * bytes.
 */
import { createHash } from "node:crypto";
import type { AddressInfo, Server, Socket } from "node:net";
import { createServer } from "node:net";
import { PING_TEXT, PONG_TEXT } from "@blindrelay/protocol/wire";
import fc from "fast-check";
import { afterEach, expect, it } from "vitest";
import { WebSocketServer } from "ws";
import { systemTimer } from "../node/index.ts";
import { linkConformance } from "../testing/conformance/index.ts";
import { espruinoNet, type NetOptions } from "../testing/espruino-net.ts";
import { relaySides } from "../testing/relay-sides.ts";
import type { EspruinoCrypto } from "./board.ts";
import { parseUrl } from "./handshake.ts";
import { WebSocketLinks } from "./websocket.ts";

const crypto: EspruinoCrypto = {
  SHA1: (text) => {
    const digest = createHash("sha1").update(text, "latin1").digest();
    return new Uint8Array(digest).buffer;
  },
};
const random = (length: number): Uint8Array =>
  globalThis.crypto.getRandomValues(new Uint8Array(length));

const linksOver = (net: NetOptions, maxMessage = 65536): WebSocketLinks =>
  new WebSocketLinks({
    net: espruinoNet(net),
    tls: null,
    random,
    crypto,
    timer: systemTimer(),
    maxMessage,
  });

const until = async (done: () => boolean): Promise<void> => {
  while (!done()) await new Promise((resolve) => setTimeout(resolve, 1));
};

const listening = async (server: Server): Promise<number> => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return (server.address() as AddressInfo).port;
};

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

const worldOver = (net: NetOptions) => async () => {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  const dead = createServer();
  const deadPort = await listening(dead);
  await new Promise((resolve) => dead.close(resolve));
  const relays = relaySides(server);
  return {
    port: linksOver(net),
    url: `ws://127.0.0.1:${(server.address() as AddressInfo).port}/wss`,
    deadUrl: `ws://127.0.0.1:${deadPort}/wss`,
    relays,
    until,
    async end() {
      for (const socket of server.clients) socket.terminate();
      await new Promise((resolve) => server.close(resolve));
    },
  };
};

linkConformance("Espruino's, on Node", worldOver({}));
linkConformance(
  "Espruino's, in pieces, over a slow socket",
  worldOver({ pieces: [1, 7, 500], slow: true }),
);

/** A server that answers the upgrade by hand: `answer` gets the correct Sec-WebSocket-Accept. */
const rawServer = async (answer: (socket: Socket, accept: string) => void): Promise<string> => {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (head) => {
      const key = /Sec-WebSocket-Key: (.*)\r\n/.exec(head.toString())?.[1] ?? "";
      const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
      answer(
        socket,
        createHash("sha1")
          .update(key + guid)
          .digest("base64"),
      );
    });
    ends.push(() => socket.destroy());
  });
  ends.push(() => server.close());
  return `ws://127.0.0.1:${await listening(server)}/wss`;
};

const upgraded = (accept: string): string =>
  `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nsec-websocket-accept: ${accept}\r\n\r\n`;

/** An unmasked frame, as sent by servers. */
const frame = (opcode: number, payload: string, final = true): string => {
  const head = String.fromCharCode((final ? 0x80 : 0) | opcode);
  const { length } = payload;
  if (length < 126) return head + String.fromCharCode(length) + payload;
  return `${head}\x7e${String.fromCharCode(length >> 8, length & 255)}${payload}`;
};
const TEXT = 1;

/**
 * Connects, has the server send `bytes` in the same write as its 101, and returns what was
 * reported.
 */
const hear = async (
  bytes: string | ((accept: string) => string),
  net: NetOptions = {},
  maxMessage = 4096,
): Promise<{ log: string[]; sent: () => Buffer }> => {
  const log: string[] = [];
  const chunks: Buffer[] = [];
  const url = await rawServer((socket, accept) => {
    socket.on("data", (data: Buffer) => chunks.push(data));
    const text = typeof bytes === "string" ? upgraded(accept) + bytes : bytes(accept);
    socket.write(text, "latin1");
  });
  linksOver(net, maxMessage).connect(url, {
    opened: () => log.push("opened"),
    received: (text) => log.push(text),
    closed: (code, reason) => log.push(`closed ${code} ${reason}`),
  });
  await until(() => log.some((line) => line.startsWith("closed") || line === "end"));
  return { log, sent: () => Buffer.concat(chunks) };
};

/**
 * The close code in the only frame that the client sent (masked, 2 bytes of code and its reason).
 */
const closeCodeIn = (sent: Buffer): number => {
  expect(sent[0]).toBe(0x88);
  const mask = sent.subarray(2, 6);
  return (
    (((sent[6] as number) ^ (mask[0] as number)) << 8) | ((sent[7] as number) ^ (mask[1] as number))
  );
};

it("receives messages in the same segment as the 101", async () => {
  const { log } = await hear(frame(TEXT, "one") + frame(TEXT, "two") + frame(TEXT, "end"));
  expect(log).toEqual(["opened", "one", "two", "end"]);
});

it("receives once what is repeated while it waits", async () => {
  const texts = ["one", "two", "one", "end"].map((text) => frame(TEXT, text));
  const { log } = await hear(texts.join(""));
  expect(log).toEqual(["opened", "one", "two", "end"]);
});

it("queues one pong for any number of pings that come while it can send nothing", async () => {
  const written: string[] = [];
  let socket!: { data: (bytes: string) => void; key: string };
  const links = new WebSocketLinks({
    ...{ tls: null, random, crypto, timer: systemTimer(), maxMessage: 4096 },
    net: {
      connect: (_options, connected) => {
        setTimeout(connected);
        socket = { data: () => undefined, key: "" };
        return {
          on: (event: string, fn: (data: never) => void) => {
            if (event === "data") socket.data = fn as (bytes: string) => void;
          },
          write: (bytes: string) => {
            written.push(bytes);
            return false;
          },
          end: () => undefined,
        };
      },
    },
  });
  let isOpen = false;
  const link = links.connect("ws://relay.test/wss", {
    opened: () => {
      isOpen = true;
    },
    received: () => link.send(PONG_TEXT),
    closed: () => undefined,
  }) as unknown as { send(text: string): void; queue: string[] };
  await until(() => written.length > 0);
  const key = /sec-websocket-key: (.*)\r/i.exec(written[0] as string)?.[1];
  const accept = createHash("sha1")
    .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
    .digest("base64");
  socket.data(upgraded(accept));
  await until(() => isOpen);
  const before = written.length;
  for (let n = 0; n < 1000; n++) socket.data(frame(9, "a frame that asks for another"));
  for (let n = 0; n < 1000; n++) socket.data(frame(TEXT, PING_TEXT));
  expect(written).toHaveLength(before + 1);
  expect(link.queue).toEqual([PONG_TEXT]);
});

it("drops the oldest that it has no room for while one is handled, and lets no ping of the relay wait", async () => {
  const [one, two, three] = ["1".repeat(60), "2".repeat(100), "3".repeat(60)];
  const texts = [one, two, three, PING_TEXT].map((text) => frame(TEXT, text));
  const { log } = await hear(texts.join("") + frame(8, ""), {}, 100);
  expect(log).toEqual(["opened", PING_TEXT, one, three, "closed 1005 "]);
});

it("drops what its client repeats, an opening or a first packet, before a call that would be lost", async () => {
  const packet = (sid: string, seq: number): string =>
    `{"v":"2","sid":"${sid}","seq":${seq},"p":"${"p".repeat(20)}"}`;
  const enveloped = JSON.stringify({ type: "packet", payload: packet("E", 0) });
  const handled = packet("A.B", 7);
  const calls = [packet("C.D", 10), packet("F.G", 2)];
  const texts = [handled, calls[0], packet("H", 0), packet("I.J", 1), enveloped, calls[1]];
  const bytes = texts.map((text) => frame(TEXT, text as string)).join("");
  const { log } = await hear(bytes + frame(8, ""), {}, 1024 + 150);
  expect(log).toEqual(["opened", handled, ...calls, "closed 1005 "]);
});

it("joins fragments with control frames in between", async () => {
  const { log } = await hear(
    frame(TEXT, "a", false) +
      frame(9, "ping") +
      frame(0, "b", false) +
      frame(0, "c") +
      frame(TEXT, "end"),
  );
  expect(log).toEqual(["opened", "abc", "end"]);
});

it("joins 64 fragments", async () => {
  const { log } = await hear(
    frame(TEXT, "a", false) + frame(0, "b", false).repeat(62) + frame(0, "c") + frame(TEXT, "end"),
  );
  expect(log).toEqual(["opened", `a${"b".repeat(62)}c`, "end"]);
});

it("answers a ping with its payload, masked", async () => {
  const { sent } = await hear(frame(9, "are you there") + frame(TEXT, "end"));
  await until(() => sent().length >= 6 + 13);
  const bytes = sent();
  expect(bytes[0]).toBe(0x8a);
  expect(bytes[1]).toBe(0x80 | 13);
  const payload = bytes.subarray(6, 19).map((byte, i) => byte ^ (bytes[2 + (i & 3)] as number));
  expect(Buffer.from(payload).toString()).toBe("are you there");
});

it.each<[string, string, number]>([
  ["a masked frame", "\x81\x81abcd", 1002],
  ["reserved bits", "\xc1\x01a", 1002],
  ["a fragment of nothing", frame(0, "x"), 1002],
  ["a text inside a text", frame(TEXT, "a", false) + frame(TEXT, "b"), 1002],
  ["a long ping", frame(9, "x".repeat(126)), 1002],
  ["a fragmented ping", frame(9, "x", false), 1002],
  ["binary", frame(2, "x"), 1003],
  ["a message over the limit", frame(TEXT, "x".repeat(4097)), 1009],
  [
    "fragments over the limit",
    frame(TEXT, "x".repeat(4000), false) + frame(0, "x".repeat(97)),
    1009,
  ],
  [
    "the 65th fragment of a message",
    frame(TEXT, "a", false) + frame(0, "", false).repeat(62) + frame(0, "", false) + frame(0, ""),
    1008,
  ],
  ["a length of 64 bits", "\x81\x7f\x00\x00\x01\x00\x00\x00\x00\x00", 1009],
])("ends the link on %s", async (_what, bytes, code) => {
  const { log, sent } = await hear(bytes);
  expect(log[0]).toBe("opened");
  expect(log.at(-1)).toMatch(new RegExp(`^closed ${code}`));
  await until(() => sent().length >= 8);
  expect(closeCodeIn(sent())).toBe(code);
});

it("accepts a message just at the limit, and its length in 64 bits", async () => {
  const long = "x".repeat(4096);
  const { log } = await hear(`\x81\x7f\0\0\0\0\0\0\x10\0${long}${frame(TEXT, "end")}`);
  expect(log).toEqual(["opened", long, "end"]);
});

it.each<[string, (accept: string) => string]>([
  ["a wrong accept", () => upgraded("AAAAAAAAAAAAAAAAAAAAAAAAAAA=")],
  ["no accept", () => "HTTP/1.1 101 Switching Protocols\r\n\r\n"],
  ["no upgrade", () => "HTTP/1.1 426 Upgrade Required\r\n\r\n"],
  ["an answer without end", () => `HTTP/1.1 101 ${"x".repeat(3000)}`],
])("does not open on %s", async (_what, answer) => {
  const { log } = await hear(answer);
  expect(log).toHaveLength(1);
  expect(log[0]).toMatch(/^closed 1006 /);
});

it("reports the server's close code and reason, and 1005 if there is none", async () => {
  expect((await hear(frame(8, "\x03\xf4restart"))).log).toEqual(["opened", "closed 1012 restart"]);
  expect((await hear(frame(8, ""))).log).toEqual(["opened", "closed 1005 "]);
});

it("does not throw out of connect if the socket does", async () => {
  const log: string[] = [];
  linksOver({ throws: true }).connect("ws://127.0.0.1:1/", {
    opened: () => log.push("opened"),
    received: () => {},
    closed: (code) => log.push(`closed ${code}`),
  });
  expect(log).toEqual([]);
  await until(() => log.length > 0);
  expect(log).toEqual(["closed 1006"]);
});

it("does not throw if the socket is gone when it writes", async () => {
  const log: string[] = [];
  const timers: (() => void)[] = [];
  const links = new WebSocketLinks({
    net: {
      connect: (_target, connected) => {
        timers.push(connected);
        const gone = (): never => {
          throw new Error("Function not found");
        };
        return { on: () => {}, write: gone, end: gone };
      },
    },
    tls: null,
    random,
    crypto,
    timer: { now: () => 0, set: (_ms, fn) => timers.push(fn), clear: () => {} },
    maxMessage: 100,
  });
  links.connect("ws://a/", {
    opened: () => log.push("opened"),
    received: () => {},
    closed: (code) => log.push(`closed ${code}`),
  });
  while (timers.length > 0) timers.shift()?.();
  expect(log).toEqual(["closed 1006"]);
});

it("reports missing TLS", async () => {
  const log: string[] = [];
  linksOver({}).connect("wss://127.0.0.1/", {
    opened: () => {},
    received: () => {},
    closed: (_code, reason) => log.push(reason),
  });
  await until(() => log.length > 0);
  expect(log).toEqual(["this board has no TLS"]);
});

it("receives the same however the bytes are split", async () => {
  const text = fc.string({ unit: "grapheme-ascii", minLength: 1, maxLength: 300 });
  const texts = fc.uniqueArray(text, { maxLength: 5 });
  const pieces = fc.array(fc.integer({ min: 1, max: 400 }), { minLength: 1, maxLength: 5 });
  await fc.assert(
    fc.asyncProperty(texts, pieces, async (messages, lengths) => {
      let bytes = "";
      for (const text of messages) {
        const half = text.length >> 1;
        bytes +=
          frame(TEXT, text.slice(0, half), false) + frame(9, "") + frame(0, text.slice(half));
      }
      const { log } = await hear(bytes + frame(TEXT, "end"), { pieces: lengths });
      expect(log).toEqual(["opened", ...messages, "end"].slice(0, log.length));
      expect(log.at(-1)).toBe("end");
    }),
    { numRuns: 25 },
  );
});

it("parses addresses", () => {
  expect(parseUrl("ws://a.example/wss")).toEqual({
    secure: false,
    host: "a.example",
    port: 80,
    path: "/wss",
  });
  expect(parseUrl("wss://a.example")).toEqual({
    secure: true,
    host: "a.example",
    port: 443,
    path: "/",
  });
  expect(parseUrl("ws://[::1]:81/x")).toEqual({
    secure: false,
    host: "[::1]",
    port: 81,
    path: "/x",
  });
  for (const bad of ["http://a", "ws://", "ws://a:0/", "ws://a:65536/", "ws://a:x/"])
    expect(parseUrl(bad)).toBeNull();
});
