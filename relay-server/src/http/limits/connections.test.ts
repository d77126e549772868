/** Connections without a link are bounded, by address, and a handshake in time. */
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { createServer as createTlsServer } from "node:https";
import { type AddressInfo, connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { connect as connectTls } from "node:tls";
import { afterEach, describe, expect, test, vi } from "vitest";
import { makeCertificates, noOpenssl } from "../../testing/certificates.ts";
import { endWithProblem, HttpProblem } from "../base/problem.ts";
import { BySize } from "./by-size.ts";
import { Connections } from "./connections.ts";

let server: Server;
const sockets: Socket[] = [];
afterEach(async () => {
  vi.useRealTimers();
  for (const socket of sockets.splice(0)) socket.destroy();
  await new Promise((resolve) => server.close(resolve));
});

const listen = async (made: Server, max?: number): Promise<Connections> => {
  server = made;
  const connections = new Connections(server, max);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return connections;
};

const portOf = () => (server.address() as AddressInfo).port;

/** A connection that says nothing, once the server has it. */
const open = async (localAddress = "127.0.0.1"): Promise<Socket> => {
  const taken = once(server, "connection");
  const socket = connect({ port: portOf(), host: "127.0.0.1", localAddress });
  sockets.push(socket.on("error", () => undefined));
  await taken;
  return socket;
};

test("one connection too many closes the oldest of the address that has the most", async () => {
  const connections = await listen(createServer(), 4);
  const neighbour = await open("127.0.0.2");
  const silent = [await open(), await open(), await open()];
  const closed = silent.map((socket) => once(socket, "close"));
  for (let i = 0; i < 20; i++) silent.push(await open());
  await Promise.all(closed);
  expect(connections.size).toBe(4);
  const newcomer = await open("127.0.0.3");
  expect([neighbour.destroyed, newcomer.destroyed]).toEqual([false, false]);
  for (const socket of sockets) socket.destroy();
  await expect.poll(() => connections.size).toBe(0);
});

test("a link is not counted, nor closed for others", async () => {
  const connections = await listen(createServer(), 1);
  const taken = once(server, "connection");
  const link = await open();
  connections.release((await taken)[0]);
  expect(connections.size).toBe(0);
  const [first, second] = [await open(), await open()];
  await once(first, "close");
  expect([link.destroyed, second.destroyed, connections.size]).toEqual([false, false, 1]);
});

test("a refused connection is cut after 3 s, whatever its peer does, and counted until then", async () => {
  const connections = await listen(createServer());
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const taken = once(server, "connection");
  const peer = connect({ port: portOf(), host: "127.0.0.1", allowHalfOpen: true });
  sockets.push(peer.on("error", () => undefined));
  const [socket] = (await taken) as [Socket];
  endWithProblem(socket, new HttpProblem("BAD_REQUEST", "no"));
  await once(peer, "readable");
  expect(String(peer.read())).toMatch(/^HTTP\/1.1 400 /);
  vi.advanceTimersByTime(2999);
  expect([socket.destroyed, connections.size]).toEqual([false, 1]);
  vi.advanceTimersByTime(1);
  expect(socket.destroyed).toBe(true);
  vi.useRealTimers();
  await expect.poll(() => connections.size).toBe(0);
});

test("the largest group is found whatever was added and removed", () => {
  const groups = new BySize<number>();
  expect(groups.oldestOfLargest()).toBeUndefined();
  const model = new Map<string, number[]>();
  for (let i = 0; i < 5000; i++) {
    const name = `g${(i * 7919) % 13}`;
    const items = model.get(name) ?? [];
    model.set(name, items);
    if ((i * 31) % 5 < 2 && items.length > 0) {
      groups.delete(name, items.splice((i * 17) % items.length, 1)[0] as number);
    } else {
      items.push(i);
      groups.add(name, i);
    }
    groups.delete(name, -1); // not there
    const most = Math.max(...[...model.values()].map(({ length }) => length));
    const largest = [...model.values()].filter(({ length }) => length === most);
    const candidates = most === 0 ? [undefined] : largest.map(([oldest]) => oldest);
    expect(candidates).toContain(groups.oldestOfLargest());
  }
});

describe.skipIf(noOpenssl)("over TLS", () => {
  const secure = (): Server => {
    const folder = mkdtempSync(join(tmpdir(), "blindrelay-connections-"));
    const { cert, key } = makeCertificates(folder, "nobody");
    const pair = { cert: readFileSync(cert), key: readFileSync(key) };
    rmSync(folder, { recursive: true });
    return createTlsServer(pair, (_request, response) => response.end("ok"));
  };
  const open = async (bytes: Buffer): Promise<{ peer: Socket; raw: Socket }> => {
    const taken = once(server, "connection");
    const peer = connect({ port: portOf(), host: "127.0.0.1" });
    sockets.push(peer.on("error", () => undefined));
    peer.write(bytes);
    return { peer, raw: ((await taken) as [Socket])[0] };
  };
  const HALF_HELLO = Buffer.from("16030100f8010000f40303aa", "hex");

  test.each([
    ["nothing", Buffer.alloc(0)],
    ["half a ClientHello", HALF_HELLO],
  ])("a handshake of which %s has come ends after 10 s", async (_what, bytes) => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const connections = await listen(secure());
    const { peer, raw } = await open(bytes);
    vi.advanceTimersByTime(9000);
    peer.write(Buffer.alloc(1)); // a byte does not prolong it
    expect([raw.destroyed, connections.size]).toEqual([false, 1]);
    vi.advanceTimersByTime(1000);
    expect(raw.destroyed).toBe(true);
    vi.useRealTimers();
    await expect.poll(() => connections.size).toBe(0);
  });

  test("what is no handshake ends at once", async () => {
    const connections = await listen(secure());
    const { peer } = await open(Buffer.from("GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    peer.resume();
    await once(peer, "close");
    await expect.poll(() => connections.size).toBe(0);
  });

  test("after its handshake a connection has all its time, and counts until it is a link", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    const connections = await listen(secure());
    const secured = once(server, "secureConnection");
    const peer = connectTls({ port: portOf(), host: "127.0.0.1", rejectUnauthorized: false });
    sockets.push(peer);
    const [socket] = (await secured) as [Socket];
    vi.advanceTimersByTime(30_000);
    expect([socket.destroyed, connections.size]).toEqual([false, 1]);
    connections.release(socket);
    expect(connections.size).toBe(0);
    connections.destroyAll();
    expect(socket.destroyed).toBe(false);
  });
});
