/** The link to a relay that sends what our relays never send. */
import type { AddressInfo } from "node:net";
import { afterEach, expect, test } from "vitest";
import { WebSocketServer } from "ws";
import { webSocketLinks } from "./link.ts";

let server: WebSocketServer;
afterEach(async () => {
  for (const socket of server.clients) socket.terminate();
  await new Promise((resolve) => server.close(resolve));
});

/**
 * What a link reports when it gets one message in `count` fragments, until it ends or has the
 * message.
 */
const hear = async (count: number): Promise<string> => {
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  server.on("connection", (socket) => {
    for (let i = 1; i <= count; i++) socket.send("x", { fin: i === count });
  });
  const { port } = server.address() as AddressInfo;
  return new Promise((resolve) => {
    webSocketLinks().connect(`ws://127.0.0.1:${port}/wss`, {
      opened: () => undefined,
      received: (text) => resolve(`received ${text.length}`),
      closed: (code) => resolve(`closed ${code}`),
    });
  });
};

test("a message has at most 64 fragments, so a hostile relay cannot pile them up", async () => {
  expect(await hear(64)).toBe("received 64");
  for (const socket of server.clients) socket.terminate();
  await new Promise((resolve) => server.close(resolve));
  expect(await hear(65)).toMatch(/^closed/);
});

test("a relay that pings and reads nothing gets no more pongs than a queue of 1 MiB", async () => {
  server = new WebSocketServer({ port: 0, host: "127.0.0.1" });
  await new Promise((resolve) => server.once("listening", resolve));
  const { port } = server.address() as AddressInfo;
  const queued = await new Promise<number[]>((resolve) => {
    const link = webSocketLinks().connect(`ws://127.0.0.1:${port}/wss`, {
      opened: () => {
        // In one turn nothing leaves the queue.
        for (let i = 0; i < 200_000; i++) link.send('{"type":"pong"}');
        const before = link.queuedBytes();
        link.send("what is not asked for is sent");
        resolve([before, link.queuedBytes() - before]);
      },
      received: () => undefined,
      closed: () => undefined,
    });
  });
  expect(queued[0]).toBeLessThan(1_048_576 + 100);
  expect(queued[1]).toBeGreaterThan(0);
});
