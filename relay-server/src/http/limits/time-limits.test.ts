/** Slow or silent clients hold a connection only for a bounded time, over https as over http. */
import dns from "node:dns";
import { createServer, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import Fastify from "fastify";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createLog } from "../../log.ts";
import { buildApp } from "../app.ts";
import { type Rest, startRest } from "../testing/test-rest.ts";
import { limitPipelining } from "./pipelining.ts";
import { limitBodies } from "./slow-bodies.ts";

let rest: Rest;
beforeEach(async () => {
  rest = await startRest();
});
afterEach(() => rest.close());

/** What a server sends to a slow client, until it ends the socket. */
const hear = async (port: number, bytes: string, host = "127.0.0.1"): Promise<string> => {
  const socket = connect(port, host);
  socket.on("error", () => undefined);
  socket.write(bytes);
  return text(socket);
};

test("a slow body is aborted, except uploads; a complete one is not", async () => {
  const app = Fastify();
  limitBodies(app, 50);
  app.post("/", async () => "taken");
  app.post("/upload", { config: { streams: true } }, async () => "taken");
  await app.listen({ port: 0, host: "127.0.0.1" });
  const { port } = app.addresses()[0] as { port: number };
  const head = (path: string) =>
    `POST ${path} HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: 2\r\n\r\n`;
  expect(await hear(port, `${head("/")}x`)).toMatch(/^HTTP\/1.1 400 .*took too long/s);
  expect(await hear(port, `${head("/")}xx`)).toMatch(/^HTTP\/1.1 200 .*taken$/s);
  const upload = connect(port, "127.0.0.1");
  upload.write(`${head("/upload")}x`);
  expect(await hear(port, `${head("/")}x`)).toContain("took too long"); // though it began later
  upload.write("x");
  expect(await text(upload)).toMatch(/taken$/);
  await app.close();
});

test("on one connection eight requests may wait; one more ends it, and none of them is processed", async () => {
  const held: ServerResponse[] = [];
  const server = createServer((_request, response) => held.push(response));
  limitPipelining(server);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const refused = await hear(port, request.repeat(100));
  expect(refused).toMatch(/^HTTP\/1.1 429 .*"RATE_LIMITED"/s);
  expect(held).toHaveLength(8);
  const kept = connect(port, "127.0.0.1");
  for (let round = 0; round < 2; round++) {
    held.length = 0;
    kept.write(request.repeat(8));
    await expect.poll(() => held).toHaveLength(8);
    for (const response of held) response.end("ok");
    await expect.poll(() => held.every(({ closed }) => closed)).toBe(true);
  }
  expect(kept.destroyed).toBe(false);
  kept.destroy();
  server.close();
});

test("a relay ends a connection that sends many requests at once", async () => {
  await rest.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = rest.app.addresses()[0] as { port: number };
  const many = "GET /api/v1/auth/config HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
  expect(await hear(port, many)).toMatch(/^HTTP\/1.1 429 .*send the next when one is answered/s);
});

test("it does so on every address that it listens on", async () => {
  // As if `localhost` was 127.0.0.1 and ::1, which is not the case on every machine.
  const lookUp = (host: string, _options: object, done: (error: null, found: object) => void) => {
    const addresses = host === "localhost" ? ["127.0.0.1", "127.0.0.2"] : [host];
    done(
      null,
      addresses.map((address) => ({ address, family: 4 })),
    );
  };
  vi.spyOn(dns, "lookup").mockImplementation(lookUp as never);
  await rest.app.listen({ host: "localhost", port: 0 });
  vi.restoreAllMocks();
  const many = "GET /api/v1/auth/config HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
  for (const { address, port } of rest.app.addresses() as AddressInfo[]) {
    expect(await hear(port, many, address)).toMatch(/^HTTP\/1.1 429 /);
  }
});

test("two Host headers are 400", async () => {
  await rest.app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = rest.app.addresses()[0] as { port: number };
  const answer = await hear(
    port,
    "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n",
  );
  expect(answer).toMatch(/^HTTP\/1.1 400 .*one Host header/s);
});

test("a silent connection and a slow request end, on a custom server too, and proxies may reuse theirs", async () => {
  const own = buildApp(rest.context, createLog("silent"), (listener) => createServer(listener));
  for (const { server } of [rest.app, own]) {
    expect(server.headersTimeout).toBe(60_000);
    expect(server.timeout).toBe(0); // otherwise links would have a timer that they do not need
    expect(server.requestTimeout).toBe(3_600_000);
    expect(server.keepAliveTimeout).toBe(72_000);
  }
  let met: Socket | undefined;
  own.server.on("request", ({ socket }) => {
    met = socket;
  });
  await own.listen({ host: "127.0.0.1", port: 0 });
  const { port } = own.addresses()[0] as { port: number };
  await hear(port, "GET /health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(met?.timeout).toBe(60_000);
  await own.close();
});
