/** Node's own HTTP, over pairs of streams in place of sockets. */
import { EventEmitter } from "node:events";
import http, { type IncomingMessage, type RequestListener } from "node:http";
import https from "node:https";
import type { TcpNetConnectOpts } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { afterEach, describe, expect, it, vi } from "vitest";
import { OUTBOX_BYTES } from "../spec.ts";
import { PONG_TEXT } from "../wire/ping.ts";
import { type HttpRequest, readText } from "./http.ts";
import { linksOver, nodeHttp, openTunnel, proxyFor } from "./node.ts";

afterEach(() => {
  http.globalAgent.destroy();
  vi.useRealTimers();
});

/** What HTTP asks of a socket beyond its being a stream. */
const asSocket = (stream: Duplex): Duplex => {
  let idle: NodeJS.Timeout | undefined;
  return Object.assign(stream, {
    setTimeout: (ms: number) => {
      clearTimeout(idle);
      if (ms > 0) idle = setTimeout(() => stream.emit("timeout"), ms).unref();
      return stream;
    },
    setKeepAlive: () => stream,
    setNoDelay: () => stream,
    ref: () => stream,
    unref: () => stream,
  });
};

/** All connections that Node's HTTP opens lead to `listener`. */
const serverFor = (listener: RequestListener) => {
  const server = http.createServer(listener);
  const opened: { readonly host: unknown; readonly addressMs: unknown; readonly near: Duplex }[] =
    [];
  vi.spyOn(http.Agent.prototype, "createConnection").mockImplementation((options) => {
    const [near, far] = duplexPair().map(asSocket) as [Duplex, Duplex];
    const { host, autoSelectFamilyAttemptTimeout: addressMs } = options as TcpNetConnectOpts;
    opened.push({ host, addressMs, near });
    server.emit("connection", far);
    return near;
  });
  return { server, opened };
};

const request = (given: Partial<HttpRequest> = {}): HttpRequest => ({
  url: "http://relay.example/health",
  method: "GET",
  headers: {},
  signal: new AbortController().signal,
  ...given,
});

const bodyOf = async (incoming: IncomingMessage): Promise<string> => {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks).toString();
};

describe("a request on Node", () => {
  it("gets the status, the headers by name, and the body; a redirection too", async () => {
    const { opened } = serverFor((_request, response) => {
      const headers = { "set-cookie": ["a=1", "b=2"], Location: "https://other.example" };
      response.writeHead(308, headers).end("there");
    });
    const answer = await nodeHttp(null)(request());
    expect(answer.status).toBe(308);
    expect(["location", "set-cookie", "etag"].map((name) => answer.header(name))).toEqual([
      "https://other.example",
      "a=1",
      null,
    ]);
    expect(await readText(answer, 100)).toBe("there");
    expect(opened).toHaveLength(1);
    // Node's own quarter of a second for each address is too short for some networks.
    expect(opened[0]?.addressMs).toBe(2500);
  });

  it("reaches a proxy with the same time for each of its addresses", async () => {
    const { opened } = serverFor(() => undefined);
    const proxy = proxyFor(new URL("https://relay.example"), "http://proxy.example:3128") as never;
    const ending = new AbortController();
    const tunnel = openTunnel(proxy, "relay.example", 443, ending.signal);
    await vi.waitFor(() => expect(opened).toHaveLength(1));
    ending.abort();
    await expect(tunnel).rejects.toThrow();
    expect(opened[0]).toMatchObject({ host: "proxy.example", addressMs: 2500 });
  });

  it("goes by TLS if its address says so", async () => {
    vi.spyOn(https, "request").mockImplementation(() => {
      throw new Error("by TLS");
    });
    const asked = nodeHttp(null)(request({ url: "https://relay.example/" }));
    await expect(asked).rejects.toThrow("by TLS");
  });

  it("sends its method, its headers, and any kind of body", async () => {
    serverFor(async (incoming, response) => {
      const { method, url, headers } = incoming;
      response.end(`${method} ${url} ${headers["x-name"]} ${await bodyOf(incoming)}`);
    });
    const ask = nodeHttp(null);
    const parts = async function* () {
      yield Buffer.from("ab");
      yield Buffer.from("cd");
    };
    for (const [body, text] of [
      ["text", "text"],
      ["", ""],
      [null, ""],
      [undefined, ""],
      [parts(), "abcd"],
      [new Blob(["blob"]), "blob"],
    ] as const) {
      const given = {
        method: "PUT",
        headers: { "x-name": "n" },
        ...(body === undefined ? {} : { body }),
      };
      const answer = await ask(request(given));
      expect(await readText(answer, 100)).toBe(`PUT /health n ${text}`);
    }
  });

  /** A server that closes the connection instead of answering a second time on it. */
  const closingOnce = () => {
    let isFirst = true;
    return serverFor((incoming, response) => {
      if (incoming.url !== "/again" || !isFirst) response.end("ok");
      else {
        isFirst = false;
        incoming.socket.destroy();
      }
    });
  };
  const first = async (ask: ReturnType<typeof nodeHttp>) => {
    expect(await readText(await ask(request()), 9)).toBe("ok");
    // The connection is free in a moment.
    await new Promise((resolve) => setImmediate(resolve));
  };

  it("is made again if a kept connection was just closed and nothing can have changed", async () => {
    const { opened } = closingOnce();
    const ask = nodeHttp(null);
    await first(ask);
    const answer = await ask(request({ url: "http://relay.example/again" }));
    expect([await readText(answer, 9), opened.length]).toEqual(["ok", 2]);
  });

  it("is not made again if it may have changed something", async () => {
    for (const method of ["POST", "DELETE"]) {
      closingOnce();
      const ask = nodeHttp(null);
      await first(ask);
      const again = ask(request({ url: "http://relay.example/again", method }));
      await expect(again).rejects.toThrow(/hang up|ECONNRESET/);
    }
  });

  it("is not made again if its answer has begun", async () => {
    const asked: unknown[] = [];
    const { opened } = serverFor((incoming, response) => {
      asked.push(incoming.url);
      if (incoming.url !== "/again") response.end("ok");
      else response.write("part");
    });
    const ask = nodeHttp(null);
    await first(ask);
    const answer = await ask(request({ url: "http://relay.example/again" }));
    opened[0]?.near.destroy(new Error("reset"));
    await expect(readText(answer, 9)).rejects.toThrow();
    await new Promise((resolve) => setImmediate(resolve));
    expect(asked).toEqual(["/health", "/again"]);
  });

  it("is not made again on a connection of its own", async () => {
    const { opened } = serverFor((incoming) => void incoming.socket.destroy());
    await expect(nodeHttp(null)(request())).rejects.toThrow("socket hang up");
    expect(opened).toHaveLength(1);
  });

  it("ends with its signal, before the answer and during it", async () => {
    const ended = new AbortController();
    const { server } = serverFor((_request, response) => void response.write("part"));
    const waiting = nodeHttp(null)(request({ signal: ended.signal }));
    const { chunks } = await waiting;
    const reading = (async () => {
      for await (const _ of chunks) ended.abort();
    })();
    await expect(reading).rejects.toThrow(/abort/i);
    server.removeAllListeners("request");
    const before = nodeHttp(null)(request({ signal: ended.signal }));
    await expect(before).rejects.toThrow(/abort/i);
  });

  it("fails if its body does", async () => {
    serverFor(() => undefined);
    const body = (async function* () {
      yield Buffer.from("a");
      throw new Error("the disk is gone");
    })();
    const failed = nodeHttp(null)(request({ method: "PUT", body }));
    await expect(failed).rejects.toThrow("the disk is gone");
  });

  it("reads no more of its body once it has ended", async () => {
    serverFor(() => undefined);
    const ended = new AbortController();
    let isLeft = false;
    const body = (async function* () {
      try {
        for (;;) {
          yield Buffer.from("a");
          ended.abort();
        }
      } finally {
        isLeft = true;
      }
    })();
    const cut = nodeHttp(null)(request({ method: "PUT", body, signal: ended.signal }));
    await expect(cut).rejects.toThrow(/abort/i);
    await vi.waitFor(() => expect(isLeft).toBe(true));
  });

  it("fails at an upgrade that nobody asked for", async () => {
    const { server } = serverFor(() => undefined);
    server.removeAllListeners("request");
    server.on("request", (incoming: IncomingMessage) => {
      incoming.socket.end("HTTP/1.1 101 Odd\r\nconnection: upgrade\r\nupgrade: odd\r\n\r\n");
    });
    await expect(nodeHttp(null)(request())).rejects.toThrow("socket hang up");
  });
});

describe("through a proxy", () => {
  const PROXY = "http://ada:secret@proxy.example:3128";

  /** A proxy whose tunnels all lead to `listener`. */
  const proxyTo = (listener: RequestListener, head = "HTTP/1.1 200 OK\r\n\r\n") => {
    const asked: unknown[] = [];
    const inner = http.createServer(listener);
    const { server, opened } = serverFor((_request, response) => void response.end("not a tunnel"));
    server.on("connect", ({ url, headers }: IncomingMessage, socket: Duplex) => {
      asked.push([url, headers.host, headers["proxy-authorization"]]);
      socket.write(head);
      inner.emit("connection", socket);
    });
    return { asked, opened };
  };

  it("a request goes by a tunnel, which the next one to the same place shares", async () => {
    const { asked, opened } = proxyTo((_request, response) => void response.end("inside"));
    const ask = nodeHttp(PROXY);
    for (let i = 0; i < 2; i++) {
      expect(await readText(await ask(request()), 9)).toBe("inside");
      await new Promise((resolve) => setImmediate(resolve));
    }
    const other = await ask(request({ url: "http://[fd00::7]:8080/" }));
    expect(await readText(other, 9)).toBe("inside");
    // The far end of this one does not speak TLS.
    await expect(ask(request({ url: "https://relay.example/" }))).rejects.toThrow();
    const authorization = `Basic ${btoa("ada:secret")}`;
    expect(asked).toEqual([
      ["relay.example:80", "relay.example:80", authorization],
      ["[fd00::7]:8080", "[fd00::7]:8080", authorization],
      ["relay.example:443", "relay.example:443", authorization],
    ]);
    expect(opened.map(({ host }) => host)).toEqual(Array(3).fill("proxy.example"));
  });

  it.each([300, 407, 502])("a tunnel that is refused with %i fails the request", async (status) => {
    const { opened } = proxyTo(() => undefined, `HTTP/1.1 ${status} No\r\n\r\n`);
    const failed = nodeHttp(PROXY)(request());
    await expect(failed).rejects.toMatchObject({
      code: "PROXY_REFUSES",
      message: `the proxy proxy.example:3128 answered ${status} for relay.example:80`,
    });
    expect(opened[0]?.near.destroyed).toBe(true);
  });

  it("what comes with the proxy's answer is read, and one without a user is asked as such", async () => {
    const early = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nearly";
    const { asked } = proxyTo(() => undefined, `HTTP/1.1 200 OK\r\n\r\n${early}`);
    const answer = await nodeHttp("http://proxy.example:3128")(request());
    expect(await readText(answer, 9)).toBe("early");
    expect(asked).toEqual([["relay.example:80", "relay.example:80", undefined]]);
  });

  it("a proxy that cannot be reached fails the request, with the reason", async () => {
    const { opened } = proxyTo(() => undefined);
    const failed = nodeHttp(PROXY)(request());
    opened[0]?.near.destroy(new Error("no way"));
    await expect(failed).rejects.toMatchObject({
      code: "PROXY_AWAY",
      message: "the proxy proxy.example:3128 cannot be reached: no way",
      cause: { message: "no way" },
    });
    const silent = nodeHttp(PROXY)(request());
    opened[1]?.near.destroy(Object.assign(new Error(""), { code: "EODD" }));
    await expect(silent).rejects.toThrow("the proxy proxy.example:3128 cannot be reached: EODD");
  });

  it("a proxy that does not answer within 20 s cannot be reached, but a link may be silent", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const { server } = serverFor(() => undefined);
    server.on("connect", () => undefined);
    const over = vi.fn();
    void nodeHttp(PROXY)(request()).catch((error: Error) => over(error.message));
    await vi.advanceTimersByTimeAsync(19_999);
    expect(over).not.toHaveBeenCalled();
    await vi.advanceTimersByTimeAsync(1);
    expect(over.mock.calls).toEqual([
      ["the proxy proxy.example:3128 cannot be reached: no answer in time"],
    ]);
    const { opened } = proxyTo((_request, response) => void response.write("begun"));
    const answer = await nodeHttp(PROXY)(request());
    await vi.advanceTimersByTimeAsync(60_000);
    expect([answer.status, opened[0]?.near.destroyed]).toEqual([200, false]);
  });

  it("a tunnel is not opened any more for a request that has ended", async () => {
    const { opened } = serverFor(() => undefined);
    const ended = new AbortController();
    const failed = nodeHttp(PROXY)(request({ signal: ended.signal }));
    ended.abort();
    await expect(failed).rejects.toThrow(/abort/i);
    await vi.waitFor(() => expect(opened[0]?.near.destroyed).toBe(true));
  });

  it("a setting that cannot be read fails each request, and no connection is made", async () => {
    const { opened } = serverFor(() => undefined);
    const failed = nodeHttp("socks5://proxy.example")(request());
    await expect(failed).rejects.toMatchObject({ code: "PROXY_SETTING" });
    expect(opened).toEqual([]);
  });
});

/** The class that `ws` exports, as far as a link uses it. */
class FakeSocket extends EventEmitter {
  readyState = 0;
  bufferedAmount = 0;
  readonly url: string;
  readonly options: { agent?: http.Agent; ended: AbortSignal };
  readonly done: string[] = [];

  constructor(url: string, options: object) {
    super();
    this.url = url;
    this.options = options as typeof this.options;
  }

  open(): void {
    this.readyState = 1;
    this.emit("open");
  }
  end(code: number, reason: string): void {
    this.readyState = 3;
    this.emit("close", code, Buffer.from(reason));
  }
  send(text: string): void {
    this.done.push(text);
  }
  close(code: number, reason: string): void {
    this.readyState = 2;
    this.done.push(`close ${code} ${reason}`);
  }
  terminate(): void {
    this.done.push("terminate");
  }
  pause(): void {
    this.done.push("pause");
  }
  resume(): void {
    this.done.push("resume");
  }
}

const connected = (proxy: string | null = null) => {
  const made: FakeSocket[] = [];
  const Recorded = class extends FakeSocket {
    constructor(url: string, options: object) {
      super(url, options);
      made.push(this);
    }
  };
  const told: string[] = [];
  const link = linksOver(Recorded, proxy).connect("ws://relay.example/wss", {
    opened: () => told.push("opened"),
    received: (text) => told.push(text),
    closed: (code, reason) => told.push(`closed ${code} ${reason}`),
  });
  return { link, told, socket: made[0] as FakeSocket };
};

describe("a link over a WebSocket", () => {
  it("tells what comes, but no binary message, and nothing once it is being closed", () => {
    const { link, told, socket } = connected();
    expect(socket.url).toBe("ws://relay.example/wss");
    socket.open();
    socket.emit("message", Buffer.from("a"), false);
    socket.emit("message", Buffer.from("b"), true);
    link.close(1000, "stop");
    socket.emit("message", Buffer.from("c"), false);
    socket.end(1000, "stop");
    expect(told).toEqual(["opened", "a", "closed 1000 stop"]);
  });

  it("sends while it is open, and no more pongs to a relay that does not read", () => {
    const { link, socket } = connected();
    link.send("early");
    socket.open();
    socket.bufferedAmount = OUTBOX_BYTES;
    link.send(PONG_TEXT);
    expect(socket.done).toEqual([PONG_TEXT]);
    socket.bufferedAmount++;
    link.send(PONG_TEXT);
    link.send("a");
    link.pause();
    link.resume();
    expect(link.queuedBytes()).toBe(OUTBOX_BYTES + 1);
    link.close(1000, "stop");
    link.send("late");
    expect(socket.done).toEqual([PONG_TEXT, "a", "pause", "resume", "close 1000 stop"]);
  });

  it("that is closed before it opens is cut", () => {
    const { link, socket } = connected();
    link.close(1000, "stop");
    expect(socket.done).toEqual(["terminate"]);
  });

  it("is cut if the relay does not answer its close within 2 s", () => {
    vi.useFakeTimers();
    const { link, socket } = connected();
    socket.open();
    link.close(1000, "stop");
    vi.advanceTimersByTime(1_999);
    link.close(1000, "again");
    expect(socket.done).toEqual(["close 1000 stop"]);
    vi.advanceTimersByTime(1);
    expect(socket.done).toEqual(["close 1000 stop", "terminate"]);
    const { link: answered, socket: other } = connected();
    other.open();
    answered.close(1000, "stop");
    other.end(1000, "stop");
    answered.close(1000, "again");
    vi.advanceTimersByTime(10_000);
    expect(other.done).toEqual(["close 1000 stop"]);
  });

  it("that has ended is not closed", () => {
    const { link, socket } = connected();
    socket.open();
    socket.end(1001, "");
    link.close(1000, "stop");
    expect(socket.done).toEqual([]);
  });

  it("that cannot open tells why, with what to do", () => {
    const { told, socket } = connected();
    socket.emit(
      "error",
      Object.assign(new Error("connect ECONNREFUSED"), { code: "ECONNREFUSED" }),
    );
    socket.emit("error", new Error("and then this"));
    socket.end(1006, "");
    expect(told).toEqual([
      "closed 1006 connect ECONNREFUSED; fix: is the relay running, and is the port right?",
    ]);
  });

  it("that breaks tells why, unless the relay did", () => {
    for (const [reason, text] of [
      ["", "broken: certificate"],
      ["restart", "restart"],
    ] as const) {
      const { told, socket } = connected();
      socket.open();
      socket.emit("error", new Error("broken: certificate"));
      socket.end(1006, reason);
      expect(told).toEqual(["opened", `closed 1006 ${text}`]);
    }
  });

  it("that is answered by something else than a relay is cut, and tells what answered", () => {
    const { told, socket } = connected();
    socket.emit("unexpected-response", null, {
      statusCode: 302,
      headers: { location: "https://other.example" },
    });
    expect(socket.done).toEqual(["terminate"]);
    socket.end(1006, "");
    expect(told[0]).toContain("closed 1006 this address points to https://other.example; fix: ");
    const { told: also, socket: other } = connected();
    const headers = { "content-type": "text/html" };
    other.emit("unexpected-response", null, { statusCode: 200, headers });
    other.emit("unexpected-response", null, { headers });
    other.end(1006, "");
    expect(also[0]).toContain("closed 1006 this address answered 200 with text/html");
  });

  it("through a proxy gives up its tunnel when it ends", () => {
    const { socket } = connected("http://proxy.example:3128");
    const { agent, ended } = socket.options;
    const destroy = vi.spyOn(agent as http.Agent, "destroy");
    expect([ended.aborted, destroy.mock.calls.length]).toEqual([false, 0]);
    socket.end(1006, "");
    expect([ended.aborted, destroy.mock.calls.length]).toEqual([true, 1]);
  });
});
