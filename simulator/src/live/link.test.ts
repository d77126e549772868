import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import fc from "fast-check";
import { afterEach, describe, expect, test, vi } from "vitest";
import { type WebSocket, WebSocketServer } from "ws";
import { type LiveLinkOptions, liveLinkPort } from "./link.ts";

const stops: (() => void)[] = [];

afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** A link with events that can be awaited. */
function openLink(port: number, options?: LiveLinkOptions, scheme = "ws", host = "127.0.0.1") {
  const told: string[] = [];
  const waiting: { text: string; resolve: () => void }[] = [];
  function tell(text: string): void {
    told.push(text);
    for (const one of waiting.filter((other) => other.text === text)) one.resolve();
  }
  const link = liveLinkPort(options).connect(`${scheme}://${host}:${port}/wss`, {
    opened: () => tell("opened"),
    received: (text) => tell(`received ${text}`),
    closed: (code, reason) => tell(`closed ${code} ${reason}`),
  });
  stops.push(() => link.close(1000, ""));
  return {
    link,
    told,
    until: (text: string) =>
      told.includes(text)
        ? Promise.resolve()
        : new Promise<void>((resolve) => waiting.push({ text, resolve })),
    untilClosed: () =>
      new Promise<string>((resolve) => {
        const look = (): void => {
          const closed = told.find((text) => text.startsWith("closed"));
          if (closed === undefined) setImmediate(look);
          else resolve(closed);
        };
        look();
      }),
  };
}

/** A host that only the proxy of the environment knows: it leads to this machine. */
const FAR = "relay.example";

async function proxied(status = "200 OK"): Promise<void> {
  const proxy = createHttpServer().on("connect", ({ url }, socket: Socket) => {
    const way = connect(Number(url?.split(":")[1]), "127.0.0.1", () => {
      socket.write(`HTTP/1.1 ${status}\r\n\r\n`);
      if (status.startsWith("2")) way.pipe(socket).pipe(way);
      else way.destroy();
    });
    for (const end of [way, socket]) end.on("error", () => {});
    stops.push(() => socket.destroy());
  });
  stops.push(() => proxy.close(), vi.unstubAllEnvs);
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  for (const name of ["HTTP_PROXY", "HTTPS_PROXY"]) vi.stubEnv(name, `http://127.0.0.1:${port}`);
}

async function wsServer(onConnection: (socket: WebSocket) => void): Promise<number> {
  const server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  stops.push(() => {
    for (const client of server.clients) client.terminate();
    server.close();
  });
  server.on("connection", onConnection);
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

/** A TCP server that answers the upgrade by hand; `after` is sent after the head. */
async function rawServer(
  after: Buffer,
  onUpgraded: (socket: Socket) => void = () => {},
): Promise<number> {
  const server: Server = createServer((socket) => {
    socket.on("error", () => {});
    stops.push(() => socket.destroy());
    socket.once("data", (request) => {
      const key = /Sec-WebSocket-Key: (.*)\r\n/.exec(String(request))?.[1];
      const accept = createHash("sha1")
        .update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`)
        .digest("base64");
      const head = `HTTP/1.1 101 Go\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`;
      socket.write(Buffer.concat([Buffer.from(head), after]));
      onUpgraded(socket);
    });
  });
  stops.push(() => server.close());
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return (server.address() as AddressInfo).port;
}

describe("a link with a ws server", () => {
  test("gathers what is sent in one turn, if configured", async () => {
    const port = await wsServer((socket) => {
      socket.on("message", (data) => socket.send(String(data)));
    });
    const opened = openLink(port, { gathers: true });
    await opened.until("opened");
    for (const text of ["a", "b", "c"]) opened.link.send(text);
    expect(opened.link.queuedBytes?.()).toBe(3 * 7); // a header, a mask and the letter
    await opened.until("received c");
    expect(opened.told).toEqual(["opened", "received a", "received b", "received c"]);
    expect(opened.link.queuedBytes?.()).toBe(0);
  });

  test.each(["127.0.0.1", FAR])(
    "carries texts of any size both ways, in order: %s",
    async (host) => {
      if (host === FAR) await proxied();
      const port = await wsServer((socket) =>
        socket.on("message", (data) => socket.send(String(data))),
      );
      await fc.assert(
        fc.asyncProperty(
          fc.array(
            fc.oneof(
              fc.string(),
              fc.nat(65_536).map((n) => "y".repeat(n)),
            ),
            { maxLength: 8 },
          ),
          async (texts) => {
            const peer = openLink(port, {}, "ws", host);
            await peer.until("opened");
            for (const text of texts) peer.link.send(text);
            peer.link.send("the last");
            await peer.until("received the last");
            expect(peer.told.slice(1, -1)).toEqual(texts.map((text) => `received ${text}`));
            peer.link.close(1000, "done");
            await peer.until("closed 1000 done");
          },
        ),
        { numRuns: 25 },
      );
    },
  );

  test("closes from our side with code and reason, and reports it once", async () => {
    const seen = Promise.withResolvers<string>();
    const port = await wsServer((socket) =>
      socket.on("close", (code, reason) => seen.resolve(`${code} ${reason}`)),
    );
    const peer = openLink(port);
    await peer.until("opened");
    peer.link.close(4001, "enough");
    peer.link.close(4002, "twice");
    expect(await seen.promise).toBe("4001 enough");
    await peer.until("closed 4001 enough");
    expect(peer.told).toEqual(["opened", "closed 4001 enough"]);
  });

  test("reports the server's close code and reason, and answers the close", async () => {
    const answered = Promise.withResolvers<number>();
    const port = await wsServer((socket) => {
      socket.on("close", (code) => answered.resolve(code));
      socket.close(1012, "restarting");
    });
    const peer = openLink(port);
    await peer.until("closed 1012 restarting");
    expect(await answered.promise).toBe(1012);
  });

  test("answers a ping with its payload", async () => {
    const pong = Promise.withResolvers<string>();
    const port = await wsServer((socket) => {
      socket.on("pong", (data) => pong.resolve(String(data)));
      socket.ping("are you there");
    });
    openLink(port);
    expect(await pong.promise).toBe("are you there");
  });

  test("is reported as 1006 when it breaks", async () => {
    const port = await wsServer((socket) => socket.terminate());
    expect(await openLink(port).untilClosed()).toMatch(/^closed 1006/);
  });

  test("closes with 1009 when a message is over the limit", async () => {
    const seen = Promise.withResolvers<number>();
    const port = await wsServer((socket) => {
      socket.on("close", (code) => seen.resolve(code));
      socket.send("x".repeat(65_537));
    });
    const peer = openLink(port);
    expect(await peer.untilClosed()).toMatch(/^closed 1009/);
    expect(await seen.promise).toBe(1009);
    expect(peer.told).toHaveLength(2);
  });

  test("loses nothing if the server reads late: writes wait, and reading waits with them", async () => {
    const got: number[] = [];
    const sentAll = Promise.withResolvers<void>();
    const all = Promise.withResolvers<void>();
    const port = await wsServer((socket) => {
      socket.pause();
      sentAll.promise.then(() => socket.resume());
      socket.on("message", (data) => {
        got.push(Number(String(data).slice(0, 2)));
        if (got.length === 12) all.resolve();
      });
    });
    const peer = openLink(port);
    await peer.until("opened");
    for (let i = 10; i < 22; i++) peer.link.send(`${i}${"z".repeat(60_000)}`);
    sentAll.resolve();
    await all.promise;
    expect(got).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21]);
  });

  test("ends when more than a mebibyte waits for a server that never reads", async () => {
    const port = await wsServer((socket) => socket.pause());
    const peer = openLink(port);
    await peer.until("opened");
    for (let i = 0; i < 400; i++) peer.link.send("z".repeat(60_000));
    await peer.until("closed 1008 the relay takes nothing more");
  });
});

describe("a link with an unusual server", () => {
  test("reads a frame in the same segment as the 101", async () => {
    const port = await rawServer(Buffer.from("810568656c6c6f", "hex"));
    const peer = openLink(port);
    await peer.until("received hello");
    expect(peer.told[0]).toBe("opened");
  });

  test("is closed with 1002 when the server breaks the framing", async () => {
    const port = await rawServer(Buffer.from("c100", "hex"));
    expect(await openLink(port).untilClosed()).toBe(
      "closed 1002 reserved bits without an extension",
    );
  });

  test("is refused with the status if there is no upgrade", async () => {
    const server = createServer((socket) => socket.end("HTTP/1.1 426 Upgrade Required\r\n\r\n"));
    stops.push(() => server.close());
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const peer = openLink((server.address() as AddressInfo).port);
    expect(await peer.untilClosed()).toBe("closed 1006 HTTP 426 to the upgrade");
    expect(peer.told).toHaveLength(1);
  });

  test("does not wait endlessly for an upgrade or for a close frame", async () => {
    const silent = createServer((socket) => stops.push(() => socket.destroy()));
    stops.push(() => silent.close());
    silent.listen(0, "127.0.0.1");
    await once(silent, "listening");
    const unanswered = openLink((silent.address() as AddressInfo).port, { connectTimeoutMs: 20 });
    expect(await unanswered.untilClosed()).toBe("closed 1006 no answer to the upgrade in time");

    const unclosed = openLink(await rawServer(Buffer.alloc(0)), { closeTimeoutMs: 20 });
    await unclosed.until("opened");
    unclosed.link.close(1000, "bye");
    expect(await unclosed.untilClosed()).toBe("closed 1000 bye");
  });

  test("a refused connection is reported as 1006, later, once", async () => {
    const server = createServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    const peer = openLink(port);
    expect(peer.told).toEqual([]);
    expect(await peer.untilClosed()).toMatch(/^closed 1006 .*ECONNREFUSED/);
  });

  test("a link that is closed while it connects never opens", async () => {
    const peer = openLink(await wsServer(() => {}));
    peer.link.close(1000, "never mind");
    await peer.until("closed 1000 never mind");
    expect(peer.told).toEqual(["closed 1000 never mind"]);
  });
});

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

describe.skipIf(!hasOpenssl)("over TLS (requires the openssl command)", () => {
  test("a link connects only to servers that Node trusts", async () => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-tls-"));
    const [key, cert] = [join(folder, "key"), join(folder, "cert")];
    const curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"];
    const name = ["-subj", "/CN=relay", "-addext", `subjectAltName=IP:127.0.0.1,DNS:${FAR}`];
    spawnSync("openssl", ["req", "-x509", ...curve, ...name, "-keyout", key, "-out", cert]);
    const pair = { key: readFileSync(key), cert: readFileSync(cert) };
    rmSync(folder, { recursive: true });
    const server = createTlsServer(pair);
    const relay = new WebSocketServer({ server });
    relay.on("connection", (socket) => socket.on("message", (data) => socket.send(`${data}!`)));
    stops.push(() => {
      for (const client of relay.clients) client.terminate();
      server.close();
    });
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;

    const stranger = openLink(port, {}, "wss");
    expect(await stranger.untilClosed()).toMatch(/^closed 1006 self-signed certificate/);

    const trusted = getCACertificates();
    setDefaultCACertificates([...trusted, `${pair.cert}`]);
    try {
      await proxied();
      const far = openLink(port, {}, "wss", FAR);
      await far.until("opened");
      const peer = openLink(port, {}, "wss");
      await peer.until("opened");
      const long = "x".repeat(50_000);
      peer.link.send(long);
      await peer.until(`received ${long}!`);
      peer.link.stall(true);
      peer.link.send("later");
      peer.link.stall(false);
      await peer.until("received later!");
    } finally {
      setDefaultCACertificates(trusted);
    }
  });
});

// dam-agents/dam#2763
test("a proxy that refuses is named", async () => {
  await proxied("403 No");
  const { untilClosed } = openLink(await wsServer(() => {}), {}, "ws", FAR);
  expect(await untilClosed()).toMatch(/^closed 1006 the proxy 127.0.0.1:\d+ answered 403 for/);
});

test("an address that is not a WebSocket's throws", () => {
  const events = { opened: () => {}, received: () => {}, closed: () => {} };
  expect(() => liveLinkPort().connect("https://127.0.0.1/wss", events)).toThrow(TypeError);
});
