/** The edge over real sockets: bad input affects its sender and nobody else. */
import { createServer, request, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text as consumeText } from "node:stream/consumers";
import { OUTBOX_BYTES } from "@blindrelay/protocol";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket } from "ws";
import { systemClocks } from "../base/clock.ts";
import { Lockout } from "../core/limits/lockout.ts";
import { authOf, envelope, type Fields, MemoryStore, packet } from "../core/testing/test-hub.ts";
import { type RunningHub, runHub } from "./hub-driver.ts";
import { attachUpgrade } from "./upgrade.ts";

const MAX = 65_536;
const WAITING = 5;
const BURST = 200;
const account = { type: "auth", api_token: "acct:ann", client_type: "client" };

let server: Server;
let running: RunningHub;
let url: string;
/** While true, the store does not respond. */
let stalled: boolean;
const logged: unknown[] = [];
const sockets: Socket[] = [];
const peers: Peer[] = [];
const raws: Raw[] = [];

beforeEach(async () => {
  const store = new MemoryStore();
  store.users.add("ann").add("bob");
  store.owners.set("lamp", "ann").set("bobs", "bob");
  logged.length = 0;
  stalled = false;
  running = runHub({
    lookups: {
      authenticate: (request) =>
        stalled ? new Promise(() => {}) : Promise.resolve(store.authenticate(request)),
      ownerOf: async (agentId) => store.owners.get(agentId) ?? null,
      labelsOf: () => null,
    },
    writeBehind: { saveRequestsUsed: async () => {}, agentSeen: async () => {} },
    lockout: new Lockout(),
    limits: { waitingPerAddress: WAITING },
    clocks: systemClocks(),
    log: { error: (...args: unknown[]) => logged.push(args) },
  });
  server = createServer(({ url }, response) => response.writeHead(404).end(`http ${url}`));
  server.on("connection", (socket) => sockets.push(socket));
  attachUpgrade(server, running, {
    addressOf: (request) => request.socket.remoteAddress ?? "",
    linked: () => undefined,
    isAnswering: () => false,
    maxMessageBytes: MAX,
    ratePerSecond: 1,
    rateBurst: BURST,
    outboxBytes: OUTBOX_BYTES,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  for (const peer of peers.splice(0)) peer.ws.terminate();
  for (const raw of raws.splice(0)) raw.socket.destroy();
  await running.drain(5_000);
  running.stop();
  sockets.length = 0;
  await new Promise((resolve) => server.close(resolve));
  expect(logged).toEqual([]);
});

/** A client of the ws library with messages that can be awaited one by one. */
class Peer {
  readonly ws: WebSocket;
  readonly closed: Promise<number>;
  readonly #inbox: Fields[] = [];
  readonly #waiting: ((message: Fields) => void)[] = [];

  constructor(path = "/wss") {
    this.ws = new WebSocket(url + path, { perMessageDeflate: true });
    peers.push(this);
    this.closed = new Promise((resolve) => this.ws.on("close", resolve));
    this.ws.on("message", (data: Buffer) => {
      const message = JSON.parse(data.toString()) as Fields;
      const waiting = this.#waiting.shift();
      if (waiting === undefined) this.#inbox.push(message);
      else waiting(message);
    });
  }

  static async open(...first: Fields[]): Promise<Peer> {
    const peer = new Peer();
    await new Promise((resolve, reject) => peer.ws.on("open", resolve).on("error", reject));
    for (const message of first) {
      peer.say(message);
      expect(await peer.next()).toMatchObject({ status: "authenticated" });
    }
    return peer;
  }

  say(message: Fields | string | Buffer): void {
    const raw = typeof message === "string" || Buffer.isBuffer(message);
    this.ws.send(raw ? message : JSON.stringify(message));
  }

  next(): Promise<Fields> {
    const message = this.#inbox.shift();
    return message === undefined
      ? new Promise((resolve) => this.#waiting.push(resolve))
      : Promise.resolve(message);
  }
}

/** A lamp and a client that communicate, whatever others do. */
const traffic = async () => {
  const [lamp, client] = [await Peer.open(authOf("lamp")), await Peer.open(account)];
  let seq = 0;
  return {
    lamp,
    client,
    goesOn: async () => {
      client.say(envelope(packet("C", seq++), { agent_id: "lamp" }));
      expect(await lamp.next()).toMatchObject({ type: "relay", agent_id: "lamp" });
      lamp.say(packet("C.A", seq));
      expect(await client.next()).toEqual(packet("C.A", seq));
    },
  };
};

describe("before authentication", () => {
  it.each([
    ["version 8", ["Sec-WebSocket-Version: 8"], /^HTTP\/1.1 426 .*sec-websocket-version: 13/is],
    ["two hosts", ["Sec-WebSocket-Version: 13", "Host: y"], /^HTTP\/1.1 400 /],
  ])("an upgrade with %s is refused", async (_what, headers, answer) => {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    const lines = ["GET /wss HTTP/1.1", "Host: x", "Upgrade: websocket", "Connection: Upgrade"];
    const key = "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==";
    socket.write(`${[...lines, key, ...headers].join("\r\n")}\r\n\r\n`);
    expect(await consumeText(socket)).toMatch(answer);
  });

  const refusal = (): Promise<{ status: number; retryAfter: string; type: string; text: string }> =>
    new Promise((resolve, reject) => {
      const headers = {
        connection: "Upgrade",
        upgrade: "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
      };
      request(`${url.replace("ws", "http")}/wss`, { headers })
        .on("response", async (response) =>
          resolve({
            status: response.statusCode as number,
            retryAfter: response.headers["retry-after"] as string,
            type: response.headers["content-type"] as string,
            text: await consumeText(response),
          }),
        )
        .on("upgrade", () => reject(new Error("upgraded")))
        .on("error", reject)
        .end();
    });

  it("an address has a limit of connections, with room for more after one authenticates or leaves", async () => {
    const waiting = [];
    for (let i = 0; i < WAITING; i++) waiting.push(await Peer.open());
    const refused = await refusal();
    expect(refused).toMatchObject({ status: 503, retryAfter: "10" });
    expect(refused.type).toBe("application/problem+json");
    expect(JSON.parse(refused.text)).toMatchObject({ status: 503, code: "UNAVAILABLE" });
    const [first, second] = waiting as [Peer, Peer];
    first.say(account);
    expect(await first.next()).toMatchObject({ status: "authenticated" });
    await Peer.open();
    await expect(refusal()).resolves.toMatchObject({ status: 503 });
    second.ws.close();
    await second.closed;
    await expect.poll(() => running.hub.hasRoom("127.0.0.1")).toBe(true);
    await Peer.open();
  });
});

describe("bad input over a real socket gets its answer and disturbs no other connection", () => {
  it.each<[string, string, (peer: Peer) => void]>([
    ["not JSON", "BAD_MESSAGE", (peer) => peer.say("{nope")],
    ["an empty message", "BAD_MESSAGE", (peer) => peer.say("")],
    ["binary", "BAD_MESSAGE", (peer) => peer.say(Buffer.from('{"type":"ping"}'))],
    ["65,537 bytes", "TOO_LARGE", (peer) => peer.say("x".repeat(65_537))],
    ["1 MB", "TOO_LARGE", (peer) => peer.say("x".repeat(1_000_000))],
    ["1 MB of binary", "TOO_LARGE", (peer) => peer.say(Buffer.alloc(1_000_000))],
    ["deep nesting", "BAD_MESSAGE", (peer) => peer.say("[".repeat(65_000))],
    [
      "deep nesting in a payload",
      "AGENT_NOT_FOUND",
      (peer) =>
        peer.say(envelope(`${"[".repeat(30_000)}${"]".repeat(30_000)}`, { agent_id: "none" })),
    ],
    ["wrong types", "BAD_MESSAGE", (peer) => peer.say({ type: "relay", agent_id: 1, payload: 2 })],
    ["an unknown type", "UNKNOWN_TYPE", (peer) => peer.say({ type: "dance" })],
    ["a second auth", "BAD_MESSAGE", (peer) => peer.say(account)],
    [
      "another user's agent",
      "AGENT_NOT_FOUND",
      (peer) => peer.say(envelope(packet("C"), { agent_id: "bobs" })),
    ],
  ])("%s: %s", async (_, code, send) => {
    const others = await traffic();
    const peer = await Peer.open(account);
    for (let i = 0; i < 2; i++) {
      send(peer);
      expect(await peer.next()).toMatchObject({ type: "error", code });
      await others.goesOn();
    }
    peer.say({ type: "ping" });
    expect(await peer.next()).toEqual({ type: "pong" });
  });

  it("early relay: AUTH_REQUIRED, and auth still works", async () => {
    const others = await traffic();
    const peer = await Peer.open();
    peer.say(envelope(packet("C.A"), { agent_id: "lamp" }));
    expect(await peer.next()).toMatchObject({ code: "AUTH_REQUIRED", sid: "C.A" });
    await others.goesOn();
    peer.say(account);
    expect(await peer.next()).toMatchObject({ status: "authenticated" });
  });

  it("duplicate keys: the last value counts", async () => {
    const others = await traffic();
    const peer = await Peer.open(account);
    peer.say('{"type":"dance","type":"ping"}');
    expect(await peer.next()).toEqual({ type: "pong" });
    await others.goesOn();
  });

  it("invalid UTF-8: BAD_MESSAGE, not a close with 1007", async () => {
    const others = await traffic();
    const peer = await Peer.open(account);
    peer.ws.send(Buffer.from('{"type":"ping","x":"\xff"}', "latin1"), { binary: false });
    expect(await peer.next()).toMatchObject({ code: "BAD_MESSAGE" });
    await others.goesOn();
  });

  it("a fragmented message is reassembled; over the limit it is TOO_LARGE", async () => {
    const peer = await Peer.open(account);
    peer.ws.send('{"type":', { fin: false });
    peer.ws.send('"ping"}', { fin: true });
    expect(await peer.next()).toEqual({ type: "pong" });
    peer.ws.send("x".repeat(60_000), { fin: false });
    peer.ws.send("x".repeat(60_000), { fin: true });
    expect(await peer.next()).toMatchObject({ code: "TOO_LARGE" });
    peer.say({ type: "ping" });
    expect(await peer.next()).toEqual({ type: "pong" });
  });

  it("the third oversized message in a row: its error, then 1008, never 1009", async () => {
    const peer = await Peer.open(account);
    for (let i = 0; i < 3; i++) peer.say("x".repeat(200_000));
    for (let i = 0; i < 3; i++) expect(await peer.next()).toMatchObject({ code: "TOO_LARGE" });
    expect(await peer.closed).toBe(1008);
  });

  it("64 fragments are a message; more get an error and 1008", async () => {
    const others = await traffic();
    const raw = await Raw.open();
    const fragments = async (text: string): Promise<void> => {
      for (const [i, letter] of [...text].entries()) {
        const first = (i === 0 ? 1 : 0) | (i === text.length - 1 ? 0x80 : 0);
        raw.frame(first, letter);
      }
    };
    const auth = JSON.stringify(account);
    raw.frame(0x81, auth);
    expect(await raw.next()).toMatchObject({ status: "authenticated" });
    await fragments(`{"type":"ping"}`.padEnd(64));
    expect(await raw.next()).toEqual({ type: "pong" });
    await fragments(`{"type":"ping"}`.padEnd(65));
    expect(await raw.next()).toMatchObject({ code: "BAD_MESSAGE" });
    expect(await raw.close()).toBe(1008);
    await others.goesOn();
  });

  it("more control frames than the configured burst get an error and 1008", async () => {
    const others = await traffic();
    const raw = await Raw.open();
    const pong = Buffer.from([0x8a, 0x80, 0, 0, 0, 0]);
    await raw.write(Buffer.concat(Array(2 * BURST).fill(pong)));
    expect(await raw.next()).toMatchObject({ code: "BAD_MESSAGE" });
    expect(await raw.close()).toBe(1008);
    await others.goesOn();
  });

  it("20 MB: TOO_LARGE, and the connection stays open; its memory is tested with the frame filter", async () => {
    const others = await traffic();
    const raw = await Raw.open();
    raw.frame(0x81, JSON.stringify(account));
    expect(await raw.next()).toMatchObject({ status: "authenticated" });
    const chunk = Buffer.alloc(1_000_000, "x");
    await raw.write(head(0x81, 20_000_000));
    for (let i = 0; i < 20; i++) await raw.write(chunk);
    expect(await raw.next()).toMatchObject({ code: "TOO_LARGE" });
    raw.frame(0x81, '{"type":"ping"}');
    expect(await raw.next()).toEqual({ type: "pong" });
    await others.goesOn();
  });

  it("a frame that breaks RFC 6455 ends only its connection", async () => {
    const others = await traffic();
    const raw = await Raw.open();
    raw.socket.write(Buffer.from([0xf3, 0x80, 0, 0, 0, 0]));
    await raw.write(Buffer.alloc(1_000_000));
    raw.socket.resume();
    await new Promise((resolve) => raw.socket.on("close", resolve).on("error", () => {}));
    await others.goesOn();
  });
});

describe("the edge", () => {
  it("forwards bytes unchanged, and sets a missing agent_id", async () => {
    const { lamp, client } = await traffic();
    const text = `{ "type":"relay","agent_id":"lamp","payload":"ü \\u00fc","request_id":"r" }`;
    const arrived = new Promise((resolve) => lamp.ws.once("message", (data) => resolve(`${data}`)));
    client.say(text);
    expect(await arrived).toBe(text);
    await lamp.next();
    const answered = new Promise((resolve) =>
      client.ws.once("message", (data) => resolve(`${data}`)),
    );
    lamp.say('{"type":"relay","payload":"é","request_id":"r"}');
    expect(await answered).toBe(
      '{"agent_id":"lamp","type":"relay","payload":"é","request_id":"r"}',
    );
  });

  it("keeps the order and loses nothing when much is sent at once", async () => {
    const { lamp, client } = await traffic();
    client.say(envelope(packet("D"), { agent_id: "lamp" }));
    for (let seq = 0; seq < 1000; seq++) client.say(packet("D.A", seq));
    await lamp.next();
    for (let seq = 0; seq < 1000; seq++) expect((await lamp.next()).seq).toBe(seq);
  });

  it("handles messages sent right after auth, after it", async () => {
    const { lamp } = await traffic();
    const peer = await Peer.open();
    peer.say(account);
    peer.say(envelope(packet("E"), { agent_id: "lamp" }));
    peer.say({ type: "ping" });
    expect(await peer.next()).toMatchObject({ status: "authenticated" });
    expect(await peer.next()).toEqual({ type: "pong" });
    expect(await lamp.next()).toMatchObject({ type: "relay" });
  });

  it("answers ping control frames, and reports an agent's end to its user's clients", async () => {
    const { lamp, client } = await traffic();
    const pong = new Promise((resolve) => client.ws.on("pong", resolve));
    client.ws.ping();
    await pong;
    lamp.ws.terminate();
    expect(await client.next()).toMatchObject({ agent_id: "lamp", online: false });
  });

  it.each([
    ["as it begins", []],
    ["after a message in fragments", ['{"type":', '"ping"}']],
  ])("answers 61 pings that arrive in one segment, %s", async (_when, fragments) => {
    const peer = await Peer.open(account);
    for (const [i, part] of fragments.entries()) peer.ws.send(part, { fin: i === 1 });
    if (fragments.length > 0) expect(await peer.next()).toEqual({ type: "pong" });
    const pongs: string[] = [];
    const all = new Promise<void>((resolve) =>
      peer.ws.on("pong", (data) => pongs.push(`${data}`) === 61 && resolve()),
    );
    const { _socket: socket } = peer.ws as unknown as { _socket: Socket };
    socket.cork();
    for (let i = 0; i < 61; i++) peer.ws.ping(`${i}`);
    socket.uncork();
    await all;
    expect(pongs).toEqual(Array.from({ length: 61 }, (_, i) => `${i}`));
    peer.say({ type: "ping" });
    expect(await peer.next()).toEqual({ type: "pong" });
  });

  it("drains with RESTARTING and 1012", async () => {
    const { lamp, client } = await traffic();
    const drained = running.drain(5_000);
    for (const peer of [lamp, client]) {
      let message = await peer.next();
      if (message.type === "agent_status") message = await peer.next();
      expect(message).toMatchObject({ code: "RESTARTING", reconnect_in: expect.any(Number) });
      expect(await peer.closed).toBe(1012);
    }
    expect(await drained).toBe(true);
  });

  it("closes in good order a connection that it had stopped reading", async () => {
    stalled = true;
    const peer = await Peer.open();
    peer.say(account);
    peer.say({ type: "ping" });
    peer.say({ type: "ping" });
    await stoppedReading();
    expect(await running.drain(10_000)).toBe(true);
    expect(await peer.closed).toBe(1012);
  });

  it("accepts upgrades only on /wss, with or without a query", async () => {
    const elsewhere = new Peer("/ws");
    const status = await new Promise((resolve) => {
      elsewhere.ws.on("unexpected-response", (_, response) => resolve(response.statusCode));
      elsewhere.ws.on("error", () => {});
    });
    expect(status).toBe(404);
    for (const path of ["/health", "/wss"]) {
      const offer = { connection: "Upgrade, HTTP2-Settings", upgrade: "h2c" };
      const { status, text } = await get(path, offer);
      expect([status, text]).toEqual([404, `http ${path}`]);
    }
    const queried = new Peer("/wss?a=1");
    await new Promise((resolve) => queried.ws.on("open", resolve));
    expect(queried.ws.extensions).toBe("");
  });

  it("accepts an upgrade whose target is a whole URL or has escapes (RFC 9112, section 3.2.2)", async () => {
    const headers = {
      connection: "Upgrade",
      upgrade: "websocket",
      "sec-websocket-version": "13",
      "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    };
    const statusOf = (path: string) =>
      new Promise((resolve) => {
        const asked = request(url.replace("ws:", "http:"), { path, headers });
        asked.on("response", ({ statusCode }) => resolve(statusCode));
        asked.on("upgrade", ({ statusCode }, socket) => {
          socket.destroy();
          resolve(statusCode);
        });
        asked.end();
      });
    expect(await statusOf("http://relay.example/wss")).toBe(101);
    expect(await statusOf("HTTPS://relay.example:8443/wss?a=1")).toBe(101);
    expect(await statusOf("/%77ss?a=1")).toBe(101);
    expect(await statusOf("/%zz")).toBe(404);
    expect(await statusOf("http://relay.example/ws")).toBe(404);
    expect(await statusOf("http://relay.example?/wss")).toBe(404);
  });
});

/** The http server's own answer. */
const get = (path: string, headers: Record<string, string>) =>
  new Promise<{ status: number | undefined; text: string }>((resolve, reject) => {
    request(`${url.replace("ws:", "http:")}${path}`, { headers }, async (response) =>
      resolve({ status: response.statusCode, text: await consumeText(response) }),
    )
      .on("error", reject)
      .end();
  });

/** Resolves when the relay has paused its only connection. */
const stoppedReading = async (): Promise<void> => {
  while (!sockets.some((socket) => socket.isPaused())) {
    await new Promise((resolve) => setImmediate(resolve));
  }
};

/** The head of a masked frame with a mask of zero, so that the payload is unchanged. */
const head = (first: number, length: number): Buffer => {
  const bytes = Buffer.alloc(14);
  bytes[0] = first;
  bytes[1] = 0xff;
  bytes.writeBigUInt64BE(BigInt(length), 2);
  return bytes;
};

/** A socket that writes WebSocket frames by hand, for what a library would not send. */
class Raw {
  readonly socket: Socket;
  #received = Buffer.alloc(0);
  #look: () => void = () => {};

  constructor(socket: Socket) {
    this.socket = socket;
  }

  static async open(): Promise<Raw> {
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    socket.write(
      "GET /wss HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
    );
    await new Promise((resolve) => socket.once("data", resolve));
    const raw = new Raw(socket);
    raws.push(raw);
    socket.on("data", (data: Buffer) => {
      raw.#received = Buffer.concat([raw.#received, data]);
      raw.#look();
    });
    return raw;
  }

  frame(first: number, text: string): void {
    this.socket.write(head(first, text.length));
    this.socket.write(text);
  }

  /** The code of the next close frame. */
  async close(): Promise<number> {
    while (this.#received.length < 4) {
      await new Promise<void>((resolve) => {
        this.#look = resolve;
      });
    }
    expect(this.#received[0]).toBe(0x88);
    return this.#received.readUInt16BE(2);
  }

  write(bytes: Buffer): Promise<unknown> {
    return new Promise((resolve) => this.socket.write(bytes, resolve));
  }

  /** The next text message. The relay sends only short or medium ones here. */
  async next(): Promise<Fields> {
    for (;;) {
      const short = (this.#received[1] ?? 0) & 0x7f;
      const at = short === 126 ? 4 : 2;
      const length = short === 126 ? this.#received.readUInt16BE(2) : short;
      if (this.#received.length >= 2 && this.#received.length >= at + length) {
        const text = this.#received.toString("utf8", at, at + length);
        this.#received = this.#received.subarray(at + length);
        return JSON.parse(text) as Fields;
      }
      await new Promise<void>((resolve) => {
        this.#look = resolve;
      });
    }
  }
}
