/** Mode `raw` over a real terminal, a real relay and the real command. */
import { randomBytes } from "node:crypto";
import type { Socket } from "node:net";
import type { Agent, CallError, Client } from "@blindrelay/client-sdk/node";
import { SESSION_MAX_REQUESTS } from "@blindrelay/protocol";
import { type Cable, HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import type { Added, Running } from "../cli/processes.ts";
import { BridgeHouse, newsOf, residentKb, until } from "./world.ts";

const MEGABYTE = 1_000_000;

/** The client's end of its link, where each request that the relay counts passes. */
interface LinkInside {
  tokenRequests: number;
  sendRequest(text: string): void;
  takeToken(message: unknown): void;
}

/** Bytes whose position can be told from any part of them, with all 256 values. */
const content = (seed: number): Uint8Array => {
  const bytes = new Uint8Array(MEGABYTE);
  let state = seed;
  for (let i = 0; i < bytes.length; i++) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
};

const MARK_BYTES = 16;

/**
 * One direction of a transfer that resumes from what the receiver has. A stream may also break
 * while the port stays, and then bytes of the previous attempt are still in transit: each attempt
 * begins with its own mark, and what precedes the latest mark is skipped.
 */
class Transfer {
  readonly got: Uint8Array[] = [];
  gotBytes = 0;
  private readonly content: Uint8Array;
  private mark: Buffer | null = null;
  /** Possibly the beginning of the mark. */
  private held = Buffer.alloc(0);

  constructor(content: Uint8Array) {
    this.content = content;
  }

  get done(): boolean {
    return this.gotBytes >= this.content.length;
  }

  /** What the sender sends next. */
  resume(): Uint8Array {
    this.mark = randomBytes(MARK_BYTES);
    this.held = Buffer.alloc(0);
    return Buffer.concat([this.mark, this.content.subarray(this.gotBytes)]);
  }

  receive(bytes: Uint8Array): void {
    const fresh = this.mark === null ? bytes : this.afterMark(this.mark, bytes);
    this.got.push(fresh);
    this.gotBytes += fresh.length;
  }

  private afterMark(mark: Buffer, bytes: Uint8Array): Uint8Array {
    const all = Buffer.concat([this.held, bytes]);
    const at = all.indexOf(mark);
    if (at < 0) {
      this.held = all.subarray(-(MARK_BYTES - 1));
      return new Uint8Array(0);
    }
    this.mark = null;
    return all.subarray(at + MARK_BYTES);
  }
}

describe.skipIf(!HAS_SOCAT)("blindrelay bridge --mode raw", () => {
  const world = new BridgeHouse();
  let client: Client;

  beforeAll(async () => {
    await world.open();
    client = await world.client();
  });
  afterAll(() => world.close());

  const start = async (
    id: string,
  ): Promise<{ cable: Cable; added: Added; running: Running; agent: Agent; socket: Socket }> => {
    const added = await world.add(id);
    const cable = world.cable();
    const socket = await cable.plug();
    const running = world.bridge(added, { port: cable.path, mode: "raw" });
    await newsOf(running, "agent", "online");
    return { cable, added, running, agent: client.agent(id, added.agent_token), socket };
  };

  it("carries 1 MB both ways at once, identical, while the port vanishes three times and the reader leaves once", async () => {
    const upward = content(1);
    const downward = content(2);
    const { cable, agent, socket, running } = await start("modem");
    const up = new Transfer(upward);
    const down = new Transfer(downward);
    cable.received = (bytes) => down.receive(bytes);
    /** The device's end; null while the cable is unplugged. */
    let device: Socket | null = socket;
    let pulls = 0;
    const presence: boolean[] = [];
    client.on("presence", ({ agentId, online }) => {
      if (agentId === "modem") presence.push(online);
    });
    const reports: CallError[] = [];
    /** Bytes that were acknowledged before the cable was pulled. */
    let confirmed = 0;

    /**
     * Acts like a terminal program: opens, and reopens when it is notified that the stream broke.
     */
    const online = async (): Promise<void> => {
      for (;;) {
        const away = await agent.call("serial.status", {}, { idempotent: true }).then(
          () => false,
          (error: CallError) => {
            expect(error.code === "REMOTE" ? error.remote?.code : error.code).not.toBe(-32000);
            return true;
          },
        );
        if (!away) return;
        await new Promise((resolve) => setTimeout(resolve, 50));
      }
    };
    const readAll = async (): Promise<void> => {
      let leaves = true;
      while (!up.done) {
        await online();
        try {
          const reader = await agent.readStream("serial.read");
          await until(() => device !== null);
          device?.write(up.resume());
          for await (const chunk of reader) {
            up.receive(chunk);
            if (up.done) break;
            // The port stays, and the device continues to send while nobody reads.
            if (leaves && up.gotBytes > 100_000) {
              leaves = false;
              break;
            }
          }
        } catch (error) {
          reports.push(error as CallError);
        }
      }
    };
    const writeAll = async (): Promise<void> => {
      while (!down.done) {
        await online();
        const pullsBefore = pulls;
        try {
          const writer = await agent.writeStream("serial.write");
          const rest = down.resume();
          for (let at = 0; at < rest.length; at += 8_000) {
            await writer.write(rest.subarray(at, at + 8_000));
          }
          await writer.end();
          // Bytes that the operating system accepted are lost with the cable.
          await until(() => down.done || pulls > pullsBefore);
          if (!down.done) confirmed++;
        } catch (error) {
          reports.push(error as CallError);
        }
      }
    };
    const pullThrice = async (): Promise<void> => {
      for (const at of [150_000, 450_000, 750_000]) {
        await until(() => down.gotBytes > at && up.gotBytes > at / 2);
        device = null;
        await cable.pull();
        pulls++;
        await newsOf(running, "port", "lost");
        device = await cable.plug();
      }
    };

    await Promise.all([pullThrice(), readAll(), writeAll()]);
    expect(pulls).toBe(3);
    expect(Buffer.concat(up.got).equals(upward)).toBe(true);
    expect(Buffer.concat(down.got).equals(downward)).toBe(true);
    // No loss was silent: each unplugging broke whatever was open.
    expect(reports.length + confirmed).toBeGreaterThanOrEqual(3);
    for (const { code, remote } of reports) {
      expect(remote?.code ?? code).toBeOneOf(["OUTCOME_UNKNOWN", "AGENT_OFFLINE", -32002]);
    }
    expect(presence.filter((there) => !there).length).toBeGreaterThanOrEqual(3);
  });

  it.each([3_000, 10_000, 65_536])(
    "takes at most 1.5 requests for 16 KiB in writes of %d bytes, and passes through a renewal of the session token",
    async (size) => {
      const total = 3 * MEGABYTE;
      const { cable, agent } = await start(`bulk-${size}`);
      let got = 0;
      cable.received = (bytes) => {
        got += bytes.length;
      };
      await agent.call("serial.status");
      const { link } = (client as unknown as { core: { link: LinkInside } }).core;
      const requests = vi.spyOn(link, "sendRequest");
      const renewals = vi.spyOn(link, "takeToken");
      // With 1,000 left of a token, the client fetches the next one.
      link.tokenRequests = SESSION_MAX_REQUESTS - 1_100;
      const interruptions: unknown[] = [];
      const stopListening = client.on("link", (report) => interruptions.push(report));
      const writer = await agent.writeStream("serial.write");
      const piece = Buffer.alloc(size, 0x55);
      for (let at = 0; at < total; at += size) {
        await writer.write(piece.subarray(0, Math.min(size, total - at)));
      }
      await writer.end();
      stopListening();
      await until(() => got === total);
      expect(requests.mock.calls.length).toBeLessThanOrEqual((1.5 * total) / 16_384);
      expect([renewals.mock.calls.length, interruptions]).toEqual([1, []]);
    },
  );

  it("calls in flight when the port disappears fail at once, as retryable", async () => {
    const { cable, agent, running } = await start("gone");
    // A writer that waits for a device that does not read.
    const writer = await agent.writeStream("serial.write");
    const broken = new Promise<CallError>((resolve) => writer.onBroken(resolve));
    await cable.pull();
    await newsOf(running, "agent", "offline");
    expect((await broken).message).toContain("broke after 0 bytes");
    const failure = (await agent
      .call("serial.status", {}, { idempotent: true })
      .catch((error) => error)) as CallError;
    expect([failure.code, failure.retryable]).toEqual(["AGENT_OFFLINE", true]);
    await cable.plug();
    await newsOf(running, "agent", "online");
    expect(await agent.call("serial.status", {}, { idempotent: true })).toMatchObject({
      mode: "raw",
    });
  });

  it("keeps its memory bounded with a reader that never reads and a device that never does", async () => {
    const { agent, running, socket } = await start("stuck");
    const reader = await agent.readStream("serial.read", {}, { windowBytes: 65_536 });
    const before = residentKb(running);
    // The device sends without end; only back-pressure stops it.
    let offered = 0;
    const chunk = Buffer.alloc(65_536, 0x55);
    let flowing = true;
    while (flowing && offered < 60 * MEGABYTE) {
      offered += chunk.length;
      if (!socket.write(chunk)) {
        flowing = await Promise.race([
          new Promise<boolean>((resolve) => socket.once("drain", () => resolve(true))),
          new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 1_000)),
        ]);
      }
    }
    expect(flowing).toBe(false);
    expect(offered).toBeLessThan(5 * MEGABYTE);
    // And the other direction: a terminal that sends without end to a device that does not read.
    socket.pause();
    const writer = await agent.writeStream("serial.write");
    let written = 0;
    void (async () => {
      for (;;) {
        await writer.write(chunk);
        written += chunk.length;
      }
    })().catch(() => undefined);
    await new Promise((resolve) => setTimeout(resolve, 1_000));
    expect(written).toBeLessThan(2 * MEGABYTE);
    expect(residentKb(running) - before).toBeLessThan(40_000);
    // The status still answers: only the bytes are blocked.
    expect(await agent.call("serial.status")).toMatchObject({ reader: true, writer: true });
    reader.cancel();
    writer.abort();
  });

  it("lets a person leave a terminal whose device accepts nothing", async () => {
    const added = await world.add("mute");
    const cable = world.cable();
    const socket = await cable.plug();
    socket.pause();
    // Longer than the test: the port is not closed meanwhile.
    const port = { port: cable.path, mode: "raw", write_timeout_ms: 600_000 };
    await newsOf(world.bridge(added, port), "agent", "online");
    const terminal = world.house.terminal(["shell", "mute", "--serial"]);
    await terminal.sees(/Ctrl-] ends/);
    // More than the bridge grants and the cable holds.
    for (let at = 0; at < 300_000; at += 3_000) terminal.type("x".repeat(3_000));
    terminal.type("\x1d");
    expect(await terminal.ended()).toBe(0);
  });

  it("changes the rate, sends to the newest reader only, and reports what a terminal lacks", async () => {
    const { agent, socket } = await start("console");
    const first = await agent.readStream("serial.read");
    const second = await agent.readStream("serial.read");
    expect(second.result).toMatchObject({ baud_rate: 115_200 });
    await expect(first.read()).rejects.toThrow("another reader took over");
    socket.write("hello");
    expect(Buffer.from((await second.read()) ?? []).toString()).toBe("hello");
    second.cancel();
    expect(await agent.call("serial.configure", { baud_rate: 9600 })).toMatchObject({
      baud_rate: 9600,
    });
    await expect(agent.call("serial.configure", { baud_rate: -1 })).rejects.toThrow("baud_rate");
    await expect(agent.call("serial.signals", { dtr: true })).rejects.toThrow("no control lines");
    await expect(agent.call("serial.signals", { rng: true })).rejects.toThrow("dtr, rts and break");
  });
});
