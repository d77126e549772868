/**
 * The cost of forwarding, in counts instead of times: reads and writes of sockets, JSON parses,
 * buffers. A count is the same on any machine; each of these tests was seen to fail with the code
 * broken.
 */
import { createServer, type Server } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { encodeClientAuth, encodeEnvelope, encodePacket } from "@blindrelay/protocol/wire";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { systemClocks } from "../base/clock.ts";
import { Lockout } from "../core/limits/lockout.ts";
import { authOf, MemoryStore } from "../core/testing/test-hub.ts";
import { type RunningHub, runHub } from "./hub-driver.ts";
import { attachUpgrade } from "./upgrade.ts";

const SID = "Zm9vYmFyZm9vYmFyZm9vYg.YmFyZm9vYmFyZm9vYmFyZg";
/** Its length occurs nowhere else in this process. */
const PACKET = encodePacket("2", SID, 7, "p".repeat(1237 - encodePacket("2", SID, 7, "").length));
const UPGRADE =
  "GET /wss HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

let server: Server;
let running: RunningHub;
/** The relay's ends of the sockets. */
let sockets: Socket[];
let client: Peer;
let agent: Peer;

/** A masked text frame. */
const frame = (text: string): Buffer => {
  const { length } = text;
  const head = length < 126 ? [0x81, 0x80 | length] : [0x81, 0xfe, length >> 8, length & 0xff];
  const payload = Buffer.from(text).map((byte, i) => byte ^ (1 + (i % 4)));
  return Buffer.concat([Buffer.from([...head, 1, 2, 3, 4]), payload]);
};

class Peer {
  readonly socket: Socket;
  #received = 0;
  #arrived: () => void = () => undefined;

  constructor() {
    this.socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
    this.socket.on("data", (chunk) => {
      this.#received += chunk.length;
      this.#arrived();
    });
  }

  /** Writes, and waits until `peer` has received this many bytes. */
  async send(bytes: Buffer | string, count: number, peer: Peer = this): Promise<void> {
    peer.#received = 0;
    this.socket.write(bytes);
    while (peer.#received < count) {
      await new Promise<void>((resolve) => {
        peer.#arrived = resolve;
      });
    }
  }
}

beforeEach(async () => {
  const store = new MemoryStore();
  store.users.add("ann");
  store.owners.set("lamp", "ann");
  running = runHub({
    lookups: {
      authenticate: async (request) => store.authenticate(request),
      ownerOf: async (agentId) => store.owners.get(agentId) ?? null,
      labelsOf: () => null,
    },
    writeBehind: { saveRequestsUsed: async () => {}, agentSeen: async () => {} },
    lockout: new Lockout(),
    clocks: systemClocks(),
    log: { error: (...args: unknown[]) => expect(args).toEqual([]) },
  });
  sockets = [];
  server = createServer().on("connection", (socket) => sockets.push(socket));
  attachUpgrade(server, running, {
    addressOf: () => "192.0.2.1",
    linked: () => undefined,
    isAnswering: () => false,
    maxMessageBytes: 65_536,
    ratePerSecond: 1000,
    rateBurst: 2000,
    outboxBytes: 1_000_000,
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  [client, agent] = [new Peer(), new Peer()];
  await client.send(UPGRADE, 100);
  await agent.send(UPGRADE, 100);
  await agent.send(frame(JSON.stringify(authOf("lamp"))), 50);
  await client.send(frame(encodeClientAuth("acct:ann", false, false)), 50);
  const opening = encodeEnvelope(encodePacket("2", SID, 0, ""), "lamp", null);
  await client.send(frame(opening), opening.length, agent);
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const { socket } of [client, agent]) socket.destroy();
  await running.drain(5_000);
  running.stop();
  await new Promise((resolve) => server.close(resolve));
});

/** Sends packets, `atOnce` at a time; returns the relay's reads and writes for each. */
const callsPerMessage = async (atOnce: number): Promise<number> => {
  let calls = 0;
  for (const socket of sockets) {
    const { _write, _writev } = socket;
    socket.on("data", () => calls++);
    socket._write = (...args) => {
      calls++;
      _write.apply(socket, args);
    };
    socket._writev = (...args) => {
      calls++;
      _writev?.apply(socket, args);
    };
  }
  const rounds = 50;
  const bytes = Buffer.concat(Array(atOnce).fill(frame(PACKET)));
  for (let i = 0; i < rounds; i++) await client.send(bytes, atOnce * (PACKET.length + 4), agent);
  expect(running.hub.counters.forwardedToAgents).toBe(1 + rounds * atOnce);
  return calls / (rounds * atOnce);
};

it("one message costs one read and one write", async () => {
  expect(await callsPerMessage(1)).toBeLessThanOrEqual(2);
});

it("four messages at once cost one read and one write together", async () => {
  expect(await callsPerMessage(4)).toBeLessThanOrEqual(0.51);
});

it("a packet as the SDKs write it is forwarded without a JSON parse or a separate buffer", async () => {
  const bytes = frame(PACKET);
  const parse = vi.spyOn(JSON, "parse");
  const buffers = (["alloc", "allocUnsafe", "allocUnsafeSlow", "concat"] as const).map((name) =>
    vi.spyOn(Buffer, name),
  );
  for (let i = 0; i < 10; i++) await client.send(bytes, PACKET.length + 4, agent);
  expect(parse.mock.calls.filter(([text]) => text.includes(SID))).toEqual([]);
  const about = ([what]: unknown[]): boolean =>
    Array.isArray(what) || Math.abs(Number(what) - PACKET.length) < 20;
  expect(buffers.flatMap(({ mock }) => mock.calls as unknown[][]).filter(about)).toEqual([]);
  // Other packets are parsed, which shows that the counters above work.
  const other = frame(PACKET.replace("{", "{ "));
  await client.send(other, PACKET.length + 5, agent);
  expect(parse.mock.calls.filter(([text]) => text.includes(SID))).toHaveLength(1);
});
