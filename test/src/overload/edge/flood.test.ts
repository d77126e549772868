/**
 * Floods from one host before anybody has logged in: silent handshakes and looks at the health.
 * A neighbour logs in and is answered meanwhile, and what the relay holds for the flood is bounded.
 */
import { readdirSync } from "node:fs";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { noOpenssl } from "@blindrelay/relay-server/testing";
import { expect, test } from "vitest";
import { RawLink } from "../raw-link.ts";
import { rawSocket } from "../raw-socket.ts";
import { MEMORY_LIMIT_BYTES, type RelayProcess, startRelayProcess } from "../relay-process.ts";
import { holdsWithin, metric } from "./conversation.ts";

/** As http/limits/connections.ts. */
const MAX_TLS = 2048;
const HALF_HELLO = Buffer.from("16030100f8010000f40303aa", "hex");

const logIn = async (relay: RelayProcess): Promise<number> => {
  const started = performance.now();
  const auth = { client_type: "client", api_token: relay.account };
  const { port, tls } = relay;
  const link = await RawLink.open({ port, tls, localAddress: "127.0.0.9", auth });
  link.close();
  return performance.now() - started;
};

test.skipIf(noOpenssl)(
  "15,000 connections of one host whose handshake stays unfinished, and a neighbour",
  async () => {
    const relay = await startRelayProcess([], { tls: true });
    const { port } = relay;
    const before = readdirSync(`/proc/${relay.child.pid}/fd`).length;
    const open = new Set<Socket>();
    const times: number[] = [];
    let most = 0;
    try {
      for (let made = 0; made < 15_000; made++) {
        const socket = rawSocket({ port, localAddress: "127.0.0.8" });
        open.add(socket);
        socket.once("close", () => open.delete(socket)).resume();
        if (made % 2 === 0) socket.write(HALF_HELLO);
        if (made % 500 === 499) {
          // As fast as the relay accepts them, so that none waits in the system's queue.
          await wait(20);
          times.push(await logIn(relay));
          most = Math.max(most, await metric(relay, "pending_connections"));
        }
      }
      expect(times).toHaveLength(30);
      expect(most).toBeGreaterThan(MAX_TLS / 2);
      expect(most).toBeLessThanOrEqual(MAX_TLS);
      expect(relay.peakRssBytes()).toBeLessThan(MEMORY_LIMIT_BYTES);
      // The others have been closed, though their peers have said nothing.
      expect(await holdsWithin(30_000, () => open.size === 0)).toBe(true);
      const left = () => readdirSync(`/proc/${relay.child.pid}/fd`).length - before;
      expect(await holdsWithin(10_000, () => left() < 20)).toBe(true);
      expect(await metric(relay, "faults_total")).toBe(0);
    } finally {
      for (const socket of open) socket.destroy();
      await relay.stop();
    }
  },
);

test("a balancer among 4,800 looks at a time, more than may wait, is told the truth", async () => {
  const relay = await startRelayProcess();
  const flooders = Array.from({ length: 600 }, () => rawSocket({ port: relay.port }));
  const looks = "GET /health/ready HTTP/1.1\r\nHost: x\r\n\r\n".repeat(8);
  let [answers, others] = [0, 0];
  try {
    for (const socket of flooders) {
      let waiting = 8;
      socket.on("data", (chunk: Buffer) => {
        for (const [, status] of chunk.toString("latin1").matchAll(/HTTP\/1\.1 (\d+) /g)) {
          answers += 1;
          waiting -= 1;
          if (status !== "200") others += 1;
        }
        if (waiting > 0) return;
        waiting = 8;
        socket.write(looks);
      });
      socket.write(looks);
    }
    const statuses: number[] = [];
    for (let i = 0; i < 3; i++) {
      statuses.push((await fetch(`${relay.url}/health/ready`)).status);
      await logIn(relay);
    }
    expect(new Set(statuses)).toEqual(new Set([200]));
    expect(await holdsWithin(60_000, () => answers > 4800)).toBe(true);
    expect(others).toBe(0);
  } finally {
    for (const socket of flooders) socket.destroy();
    await relay.stop();
  }
});
