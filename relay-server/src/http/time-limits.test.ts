/** Whoever opens connections and dawdles holds them for a bounded time, over https as over http. */
import { once } from "node:events";
import { createServer } from "node:http";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import Fastify from "fastify";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLog } from "../log.ts";
import { buildApp } from "./app.ts";
import { type Rest, startRest } from "./harness.ts";
import { limitBodies, limitConnections } from "./slow-bodies.ts";

let rest: Rest;
beforeEach(async () => {
  rest = await startRest();
});
afterEach(() => rest.close());

/** What a server that is slow to be told says on a socket, until it ends that. */
const hear = async (port: number, bytes: string): Promise<string> => {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write(bytes);
  return text(socket);
};

test("a body that drips is given up, but for uploads; a whole one is not", async () => {
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
  expect(await hear(port, `${head("/")}x`)).toContain("took too long"); // begun later, ended before
  upload.write("x");
  expect(await text(upload)).toMatch(/taken$/);
  await app.close();
});

test("so many connections may be open that are no links; one more closes the oldest", async () => {
  const server = createServer((_request, response) => response.end("ok"));
  limitConnections(server, 2);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  const request = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  const kept = [connect(port, "127.0.0.1"), connect(port, "127.0.0.1")];
  for (const socket of kept) {
    socket.write(request);
    await once(socket, "data");
  }
  const closed = once(kept[0] as Socket, "close");
  const last = request.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
  expect(await hear(port, last)).toContain("ok");
  await closed;
  expect(kept[1]?.destroyed).toBe(false);
  kept[1]?.destroy();
  server.close();
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

test("a silent connection and a slow request have an end, on a server of one's own too", async () => {
  const own = buildApp(rest.context, createLog("silent"), (listener) => createServer(listener));
  for (const { server } of [rest.app, own]) {
    expect(server.timeout).toBe(60_000);
    expect(server.requestTimeout).toBe(3_600_000);
  }
  await own.close();
});
