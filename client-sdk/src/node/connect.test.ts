/**
 * The Node edge on real sockets, with a minimal relay. The behaviour of the link is tested in
 * core/.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { makeToken } from "@blindrelay/protocol";
import { linksOver } from "@blindrelay/protocol/net/node";
import { FakeRelay, type FakeRelayEvents } from "@blindrelay/protocol/testing/fake-relay";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { WebSocket, WebSocketServer } from "ws";
import { type CallError, connect, relayUrl } from "./index.ts";

const accountToken = makeToken("account", new Uint8Array(32).fill(1));
const sessionToken = makeToken("session", new Uint8Array(32).fill(2));
const agentToken = makeToken("e2e", new Uint8Array(32).fill(3));

let server: WebSocketServer;
let url: string;
let events: FakeRelayEvents;

beforeEach(async () => {
  events = { auth: (link) => link.accept(sessionToken) };
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  server.on("connection", (socket) => {
    const link = new FakeRelay(events).attach(socket);
    socket.on("message", (data) => link.receive(data.toString()));
  });
  await new Promise((resolve) => server.once("listening", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});

afterEach(async () => {
  for (const socket of server.clients) socket.terminate();
  await new Promise((resolve) => server.close(resolve));
});

describe("connect", () => {
  it("authenticates, sends, answers pings, and closes with 1000", async () => {
    const seen: string[] = [];
    let told: () => void = () => undefined;
    const complete = new Promise<void>((resolve) => {
      told = resolve;
    });
    events.message = (link, { kind }) => {
      seen.push(kind);
      if (kind === "relay") link.ping();
      if (kind === "pong") told();
    };
    const [client, [request]] = await Promise.all([
      connect({ url, accountToken }),
      new Promise<unknown[]>((resolve) =>
        server.once("connection", (_socket, incoming) => resolve([incoming])),
      ),
    ]);
    expect((request as { url: string }).url).toBe("/wss");
    const call = client.agent("pump-7", agentToken).call("echo");
    await complete;
    // An opening that is not answered within a second is sent again.
    expect([...new Set(seen)]).toEqual(["auth", "relay", "pong"]);
    const [socket] = server.clients;
    const closed = new Promise((resolve) => socket?.once("close", resolve));
    client.close();
    await expect(call).rejects.toMatchObject({ code: "CLOSED" });
    expect(await closed).toBe(1000);
  });

  it("rejects as documented, and never throws", async () => {
    events.auth = (link) => link.refuse("INVALID_TOKEN");
    await expect(connect({ url, accountToken })).rejects.toMatchObject({ code: "REFUSED" });
    const closed = new WebSocketServer({ port: 0, host: "127.0.0.1" });
    await new Promise((resolve) => closed.once("listening", resolve));
    const { port } = closed.address() as AddressInfo;
    await new Promise((resolve) => closed.close(resolve));
    const away = connect({ url: `ws://127.0.0.1:${port}`, accountToken });
    await expect(away).rejects.toMatchObject({ code: "UNREACHABLE", retryable: true });
    await expect(connect({ url: "ftp://relay", accountToken })).rejects.toMatchObject({
      code: "BAD_ARGUMENT",
    });
    await expect(connect({ url })).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });

  it("survives whatever frames a relay sends", async () => {
    const client = await connect({ url, accountToken });
    const [socket] = server.clients;
    socket?.send(Buffer.from([1, 2, 3]));
    socket?.send("not JSON");
    socket?.send("[]");
    const lost = new Promise<CallError>((resolve) => {
      client.on("link", (report) => {
        if (report.state === "offline") resolve(report.reason);
      });
    });
    socket?.send("x".repeat(70_000));
    expect((await lost).code).toBe("UNREACHABLE");
    client.close();
  });
});

it("a link that is closed on its way through a proxy leaves no tunnel behind", async () => {
  const proxy = createServer().listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const asked = once(proxy, "connect");
  const setting = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
  const events = { opened: () => undefined, received: () => undefined, closed: () => undefined };
  const link = linksOver(WebSocket, setting).connect("ws://relay.example/wss", events);
  const [, tunnel] = await asked;
  const closed = once(tunnel, "end");
  tunnel.resume();
  link.close(1000, "client closed");
  await closed;
  proxy.close();
}, 10_000);

it("refuses anything but a relay's address with BAD_ARGUMENT", () => {
  expect(() => relayUrl("relay.example")).toThrow(
    expect.objectContaining({ code: "BAD_ARGUMENT", message: "not a URL: relay.example" }),
  );
});
