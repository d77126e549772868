/** A hostile server against the board's WebSocket client on a real Espruino, over a real socket. */
import { createHash } from "node:crypto";
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { buildForBoard } from "../../build/espruino.ts";
import { Engine, type EngineProcess } from "../engines/espruino-process.ts";

const binary = process.env.ESPRUINO_BIN;
const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

const frame = (opcode: number, payload: string, final = true): string => {
  const { length } = payload;
  const size =
    length < 126
      ? String.fromCharCode(length)
      : `\x7e${String.fromCharCode(length >> 8, length & 255)}`;
  return String.fromCharCode((final ? 0x80 : 0) | opcode) + size + payload;
};
const CLOSE = frame(8, "\x03\xe8");

/** Bytes drawn from a seed (a linear congruence): the same at every run. */
const garbage = (seed: number): string => {
  let state = seed;
  let bytes = "";
  for (let i = 0; i < 300; i++) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes += String.fromCharCode(state >>> 24);
  }
  return bytes;
};

type Serve = (socket: Socket, accept: string) => void;
const head = (accept: string): string =>
  `HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nsec-websocket-accept: ${accept}\r\n\r\n`;
const saying =
  (bytes: string): Serve =>
  (socket, accept) =>
    socket.write(head(accept) + bytes, "latin1");
/** One byte per segment, each after the previous one was sent. */
const inBytes =
  (bytes: string): Serve =>
  (socket, accept) => {
    const text = head(accept) + bytes;
    const next = (at: number): void => {
      if (at < text.length && !socket.destroyed) {
        socket.write(text.charAt(at), "latin1", () => setImmediate(() => next(at + 1)));
      }
    };
    next(0);
  };

const TABLE: [string, Serve, string[]][] = [
  ["texts in the segment of the 101", saying(frame(1, "ab") + CLOSE), ["2", "closed 1000"]],
  ["one byte at a time", inBytes(frame(1, "x".repeat(200)) + CLOSE), ["200", "closed 1000"]],
  [
    "fragments with pings between",
    saying(frame(1, "a", false) + frame(9, "p") + frame(0, "b", false) + frame(0, "c") + CLOSE),
    ["3", "closed 1000"],
  ],
  ["a pong nobody asked for", saying(frame(10, "?") + CLOSE), ["closed 1000"]],
  [
    "broken UTF-8, which the reader of JSON refuses",
    saying(frame(1, "\xff") + CLOSE),
    ["1", "closed 1000"],
  ],
  ["a close without a code", saying(frame(8, "")), ["closed 1005"]],
  ["a close with one byte", saying(frame(8, "x")), ["closed 1005"]],
  ["a masked frame", saying("\x81\x81abcd"), ["closed 1002"]],
  ["reserved bits", saying("\xc1\x01a"), ["closed 1002"]],
  ["an unknown opcode", saying(frame(3, "")), ["closed 1003"]],
  ["an unknown control frame", saying(frame(11, "")), ["closed 1003"]],
  ["a continuation of nothing", saying(frame(0, "x")), ["closed 1002"]],
  ["a text inside a text", saying(frame(1, "a", false) + frame(1, "b")), ["closed 1002"]],
  ["a long ping", saying(frame(9, "x".repeat(126))), ["closed 1002"]],
  ["a fragmented ping", saying(frame(9, "x", false)), ["closed 1002"]],
  ["a length over the limit", saying("\x81\x7e\x10\x01"), ["closed 1009"]],
  ["a length of 2^63", saying("\x81\x7f\x80\0\0\0\0\0\0\0"), ["closed 1009"]],
  [
    "fragments over the limit",
    saying(frame(1, "x".repeat(4000), false) + frame(0, "x".repeat(97))),
    ["closed 1009"],
  ],
];

const GONE: [string, Serve][] = [
  ["a reset in the handshake", (socket) => socket.resetAndDestroy()],
  ["an end in the handshake", (socket) => socket.end("HTTP/1.1 101")],
  ["a wrong accept", (socket) => socket.write(head("AAAA"))],
  ["no upgrade", (socket) => socket.write("HTTP/1.1 426 Upgrade Required\r\n\r\n")],
  ["a head without end", (socket) => socket.write("x".repeat(3000))],
];
const CUT: [string, (socket: Socket) => void][] = [
  ["a reset in a frame", (socket) => socket.resetAndDestroy()],
  ["a half-close in a frame", (socket) => socket.end()],
];

describe.skipIf(binary === undefined)(
  `the WebSocket client on a real Espruino${binary === undefined ? " (skipped: ESPRUINO_BIN names none)" : ""}`,
  () => {
    let engine: Engine;
    let life: EngineProcess;
    let server: Server;
    let serve: Serve = () => {};

    beforeAll(async () => {
      engine = new Engine(binary as string);
      const path = fileURLToPath(new URL("../testing/espruino-links.ts", import.meta.url));
      await engine.install("links", buildForBoard(path).code);
      server = createServer((socket) => {
        socket.on("error", () => {});
        socket.once("data", (request) => {
          const key = /Sec-WebSocket-Key: (.*)\r\n/.exec(request.toString())?.[1] ?? "";
          serve(
            socket,
            createHash("sha1")
              .update(key + GUID)
              .digest("base64"),
          );
        });
      });
      server.listen(0, "127.0.0.1");
      await once(server, "listening");
      life = engine.start(
        'var hear = require("links").hear; setInterval(() => {}, 100000); tell(1);',
      );
      await life.told();
    });
    afterAll(async () => {
      await engine.close();
      server.close();
    });

    /** What the board reports about one connection; its client must not throw. */
    const hear = async (serving: Serve, port = (server.address() as AddressInfo).port) => {
      serve = serving;
      life.type(`hear(require("net"), require("crypto"), "ws://127.0.0.1:${port}/", tell)`);
      const log = await life.told<string[]>();
      expect(life.output).not.toContain("Uncaught");
      return log;
    };

    it.each(TABLE)("ends cleanly on %s", async (_what, serving, expected) => {
      expect(await hear(serving)).toEqual(["opened", ...expected]);
    });

    it.each(GONE)("does not open on %s", async (_what, serving) => {
      expect(await hear(serving)).toEqual(["closed 1006"]);
    });

    it.each(CUT)("reports %s", async (_what, cut) => {
      const log = await hear((socket, accept) => {
        socket.write(`${head(accept)}\x81\x05ab`, "latin1", () => cut(socket));
      });
      expect(log.at(-1)).toBe("closed 1006");
    });

    it("reports that nothing listens", async () => {
      const dead = createServer().listen(0, "127.0.0.1");
      await once(dead, "listening");
      const { port } = dead.address() as AddressInfo;
      dead.close();
      await once(dead, "close");
      expect(await hear(() => {}, port)).toEqual(["closed 1006"]);
    });

    it.each(Array.from({ length: 20 }, (_, i) => i))("ends on garbage of seed %i", async (seed) => {
      const log = await hear((socket, accept) => {
        socket.end(head(accept) + garbage(seed), "latin1");
      });
      expect(log[0]).toBe("opened");
      expect(log.at(-1)).toMatch(/^closed \d+$/);
    });
  },
);
