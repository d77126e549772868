/**
 * The memory that one connection, and thousands of unauthenticated ones, can make the relay hold.
 * The attacks are those that once took 1 GB (one socket) and 400 MB (200 sockets, 22 MB sent).
 */
import type { Socket } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { frame, upgraded, writeAll } from "./raw-socket.ts";
import { MEMORY_LIMIT_BYTES, type RelayProcess, startRelayProcess } from "./relay-process.ts";

/** From one address, 1,024 may wait. */
const ADDRESSES = ["127.0.0.2", "127.0.0.3"];

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

const expectWell = async (): Promise<void> => {
  expect(relay.isAlive()).toBe(true);
  expect(relay.peakRssBytes()).toBeLessThan(MEMORY_LIMIT_BYTES);
  const socket = new WebSocket(`${relay.url.replace("http", "ws")}/wss`);
  const auth = { type: "auth", api_token: relay.account, client_type: "client" };
  const answer = await new Promise((resolve, reject) => {
    socket.onopen = () => socket.send(JSON.stringify(auth));
    socket.onmessage = ({ data }) => resolve(data);
    socket.onerror = () => reject(new Error("no link"));
  });
  expect(JSON.parse(answer as string)).toMatchObject({ session_token: expect.any(String) });
  socket.close();
};

const pong = frame(10, "x".repeat(125));
const CHUNK = 65_536;
/** One fragment of one byte, and pongs that fill the chunk in which it arrives. */
const fragmentAndPongs = Buffer.concat([
  frame(0, "x", { fin: false }),
  ...Array<Buffer>(Math.floor(CHUNK / pong.length)).fill(pong),
]);

test("one connection's fragments of one byte do not keep their chunks alive", async () => {
  const socket = await upgraded({ port: relay.port });
  await writeAll(socket, frame(1, "x", { fin: false }));
  // 524 MB if all of it is accepted.
  for (let i = 0; i < 8000; i++) if (!(await writeAll(socket, fragmentAndPongs))) break;
  socket.destroy();
  await expectWell();
});

test("200 connections with 16,000 fragments each", async () => {
  const first = frame(1, "x", { fin: false });
  const rest = Buffer.concat(Array<Buffer>(16_000).fill(frame(0, "x", { fin: false })));
  const sockets = await Promise.all(
    Array.from({ length: 200 }, () => upgraded({ port: relay.port })),
  );
  await Promise.all(sockets.map((socket) => writeAll(socket, Buffer.concat([first, rest]))));
  await expectWell();
  for (const socket of sockets) socket.destroy();
});

test("2,000 connections that wait, each with nearly a message", async () => {
  const half = frame(1, "x".repeat(65_000), { length: 65_536 });
  const sockets: Socket[] = [];
  for (const address of ADDRESSES) {
    for (let batch = 0; batch < 10; batch++) {
      const some = Array.from({ length: 100 }, () =>
        upgraded({ port: relay.port, localAddress: address }),
      );
      sockets.push(...(await Promise.all(some)));
    }
  }
  await Promise.all(sockets.map((socket) => writeAll(socket, half)));
  await expectWell();
  for (const socket of sockets) socket.destroy();
});
