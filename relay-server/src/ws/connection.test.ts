/**
 * One connection over a socket that the tests simulate: what it reads, compared with ws's own
 * receiver, and what it writes.
 */
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, describe, expect, it, vi } from "vitest";
import * as ws from "ws";
import { newTimings } from "../base/duration-histogram.ts";
import type { Content } from "../core/connections/connection.ts";
import type { HubLink } from "../core/link.ts";
import { acceptSocket } from "./connection.ts";
import { textFrame } from "./frames.ts";
import { HeldBytes } from "./held-bytes.ts";
import type { RunningHub } from "./hub-driver.ts";
import { YoungBuffers } from "./young-buffers.ts";

const LIMIT = 70_000;
const BURST = 500;
const OUTBOX = 40_000;

/** The relay's end of a socket; its peer reads nothing while it is stalled. */
class Wire extends Duplex {
  /** The chunks of each write; those of one `writev` are one entry. */
  readonly writes: Buffer[][] = [];
  stalled = false;
  ended = false;
  /** Copied when they are taken, as by an operating system. */
  readonly #bytes: Buffer[] = [];
  #waiting: Buffer[] = [];
  #taken: (() => void) | null = null;

  override _read(): void {}

  override _write(chunk: Buffer, _: string, done: () => void): void {
    this.#take([chunk], done);
  }

  override _writev(chunks: { chunk: Buffer }[], done: () => void): void {
    this.#take(
      chunks.map(({ chunk }) => chunk),
      done,
    );
  }

  override _final(done: () => void): void {
    this.ended = true;
    done();
  }

  #take(chunks: Buffer[], done: () => void): void {
    this.writes.push(chunks);
    this.#waiting = chunks;
    this.#taken = () => {
      this.#bytes.push(...chunks.map((chunk) => Buffer.from(chunk)));
      this.#waiting = [];
      done();
    };
    if (!this.stalled) this.goOn();
  }

  goOn(): void {
    this.stalled = false;
    const taken = this.#taken;
    this.#taken = null;
    taken?.();
  }

  /** Everything that was written, joined. */
  get written(): Buffer {
    return Buffer.concat([...this.#bytes, ...this.#waiting]);
  }

  /** The other methods of node's sockets that the link uses. */
  setNoDelay(): void {}
}

/** A connection with a hub that records what it is told. */
const connected = () => {
  const wire = new Wire();
  const heard: { text: string | null; payload: Buffer; frame: Buffer }[] = [];
  const heldBytes = new HeldBytes();
  const young = new YoungBuffers();
  let link: HubLink | null = null;
  const hub = {
    connect: (its: HubLink) => {
      link = its;
      return { peer: {} };
    },
    receive: (_: unknown, content: Content, payload: Buffer) =>
      heard.push({
        text: typeof content === "function" ? content(payload) : (content as string | null),
        payload: Buffer.from(payload),
        frame: Buffer.from(textFrame(payload)),
      }),
    ended: vi.fn(),
    closed: vi.fn(),
    queues: vi.fn(),
    fragmented: () => undefined,
    brokeFraming: vi.fn(),
  };
  const log = { error: vi.fn() };
  const running = { hub, nowMs: () => 0, log, timings: newTimings() } as unknown as RunningHub;
  const rate = { ratePerSecond: 1, rateBurst: BURST, outboxBytes: OUTBOX };
  const edge = {
    running,
    maxMessageBytes: LIMIT,
    ...rate,
    heldBytes,
    young,
    chunks: 0,
    now: 0,
  };
  acceptSocket(edge, wire as unknown as Socket, Buffer.alloc(0), "192.0.2.1");
  return { wire, hub, log, heard, heldBytes, young, link: link as unknown as HubLink };
};

interface Sent {
  /** Flags and opcode. */
  first: number;
  payload: Buffer;
  mask: Buffer | null;
}

/** A frame as a peer sends it. */
const encode = ({ first, payload, mask }: Sent): Buffer => {
  const { length } = payload;
  const extended = length < 126 ? 0 : length < 65_536 ? 2 : 8;
  const header = Buffer.alloc(2 + extended);
  header[0] = first;
  header[1] = (mask === null ? 0 : 0x80) | (extended === 0 ? length : extended === 2 ? 126 : 127);
  if (extended === 2) header.writeUInt16BE(length, 2);
  if (extended === 8) header.writeBigUInt64BE(BigInt(length), 2);
  if (mask === null) return Buffer.concat([header, payload]);
  const masked = payload.map((byte, i) => byte ^ (mask[i % 4] as number));
  return Buffer.concat([header, mask, masked]);
};

const text = (payload: string): Buffer =>
  encode({ first: 0x81, payload: Buffer.from(payload), mask: Buffer.from([1, 2, 3, 4]) });

/** What ws reads from a stream that arrives in one piece. */
const reference = async (stream: Buffer) => {
  type Receiver = NodeJS.WritableStream;
  const { Receiver } = ws as unknown as { Receiver: new (options: object) => Receiver };
  const messages: { text: boolean; payload: Buffer }[] = [];
  const answers: Buffer[] = [];
  const receiver = new Receiver({ isServer: true, skipUTF8Validation: true })
    .on("message", (data: Buffer, isBinary: boolean) =>
      messages.push({ text: !isBinary, payload: Buffer.from(data).subarray(0, LIMIT + 1) }),
    )
    .on("ping", (data: Buffer) => answers.push(Buffer.from([0x8a, data.length, ...data])))
    .on("conclude", (code: number, reason: Buffer) => {
      const payload = code === 1005 ? [] : [code >> 8, code & 0xff, ...reason];
      answers.push(Buffer.from([0x88, payload.length, ...payload]));
    })
    .on("error", () => answers.push(Buffer.from([0x88, 2, 1002 >> 8, 1002 & 0xff])));
  receiver.write(stream);
  await turn();
  return { messages, answers: Buffer.concat(answers) };
};

const TEXT = 0x81;
const LENGTH = fc.oneof(
  { weight: 6, arbitrary: fc.nat(300) },
  { weight: 1, arbitrary: fc.constantFrom(125, 126, 65_535, 65_536, LIMIT, LIMIT + 1, 90_000) },
);
const PAYLOAD = fc
  .tuple(LENGTH, fc.oneof(fc.constantFrom(65, 0x5c, 10), fc.nat(255)))
  .map(([length, byte]) => Buffer.alloc(length, byte));
const MASK = fc.uint8Array({ minLength: 4, maxLength: 4 }).map((mask) => Buffer.from(mask));
const frameOf = (first: fc.Arbitrary<number>, payload = PAYLOAD): fc.Arbitrary<Sent> =>
  fc.record({ first, payload, mask: MASK });
const SMALL = PAYLOAD.map((payload) => payload.subarray(0, 125));
const FRAME: fc.Arbitrary<Sent> = fc.oneof(
  { weight: 30, arbitrary: frameOf(fc.constant(TEXT)) },
  { weight: 6, arbitrary: frameOf(fc.constantFrom(0x89, 0x8a), SMALL) },
  { weight: 2, arbitrary: frameOf(fc.constantFrom(0x01, 0x00, 0x80, 0x02, 0x82)) },
  { weight: 1, arbitrary: frameOf(fc.nat(255)) },
  {
    weight: 1,
    arbitrary: fc.record({ first: fc.nat(255), payload: SMALL, mask: fc.constant(null) }),
  },
  {
    weight: 1,
    arbitrary: frameOf(
      fc.constant(0x88),
      fc
        .constantFrom("", "\x03", "\x03\xe8", "\x03\xe8bye", "\x03\xed")
        .map((payload) => Buffer.from(payload, "latin1")),
    ),
  },
);
const CUTS = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.nat(70_000)), { maxLength: 40 });

/** Number of random streams; 20,000 were tried by hand. */
const RUNS = 300;

describe("reading", () => {
  it("finds the same in a stream as ws's receiver, wherever the stream is cut", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(FRAME, { maxLength: 12 }), CUTS, async (frames, cuts) => {
        const stream = Buffer.concat(frames.map(encode));
        const expected = await reference(Buffer.from(stream));
        const { wire, heard, heldBytes } = connected();
        let at = 0;
        for (const size of [...cuts, stream.length]) {
          wire.emit("data", Buffer.from(stream.subarray(at, at + size)));
          at += size;
        }
        await turn();
        await turn();
        expect(wire.written.equals(expected.answers)).toBe(true);
        expect(heard.length).toBe(expected.messages.length);
        for (const [i, { text, payload }] of expected.messages.entries()) {
          const { text: read, payload: bytes, frame } = heard[i] as (typeof heard)[number];
          expect(bytes.equals(payload)).toBe(true);
          expect(frame.equals(textFrame(Buffer.from(payload.toString("latin1"), "latin1")))).toBe(
            true,
          );
          if (!text) expect(read).toBeNull();
          else if (read !== null) expect(Buffer.from(read).equals(payload)).toBe(true);
        }
        wire.destroy();
        await turn();
        expect(heldBytes.held).toBe(0);
      }),
      { numRuns: RUNS },
    );
  });

  it("frames a message for the next peer in place", async () => {
    const { wire, link, hub } = connected();
    hub.receive = (_, __, payload) => {
      link.send(payload);
      return 0;
    };
    const chunk = text("x".repeat(300));
    wire.emit("data", chunk);
    await turn();
    expect(wire.writes).toHaveLength(1);
    expect(wire.writes[0]?.[0]?.buffer).toBe(chunk.buffer);
    expect(wire.written.equals(textFrame("x".repeat(300)))).toBe(true);
  });

  it("copies little of a frame that arrives byte by byte, and holds at most twice what arrived", () => {
    const { wire, heldBytes, heard } = connected();
    const grown = vi.spyOn(Buffer, "allocUnsafeSlow");
    const frame = text("x".repeat(60_000));
    for (let at = 0; at < frame.length - 1; at++) {
      wire.emit("data", Buffer.from(frame.subarray(at, at + 1)));
      if (heldBytes.held > 2 * (at + 1)) expect(heldBytes.held).toBe(0);
    }
    expect(grown.mock.calls.length).toBeLessThan(25);
    wire.emit("data", frame.subarray(frame.length - 1));
    expect(heard[0]?.text).toBe("x".repeat(60_000));
    expect(heldBytes.held).toBe(0);
  });
});

describe("writing", () => {
  it("the frames of one turn go in one write, each link's in order, and count as queued", async () => {
    const { wire, link } = connected();
    const messages = ["one", Buffer.from("two"), "three"];
    for (const message of messages) link.send(message);
    expect(link.queued()).toBe(3 * 2 + 11);
    await turn();
    expect(wire.writes).toHaveLength(1);
    expect(wire.written.equals(Buffer.concat(messages.map((each) => textFrame(each))))).toBe(true);
    expect(link.queued()).toBe(0);
    const large = Buffer.alloc(20_000, "x");
    link.send(large);
    link.send(large);
    await turn();
    expect(wire.writes).toHaveLength(2);
  });

  it("a peer that reads nothing keeps at most twice its queue alive", async () => {
    const { wire, link, hub } = connected();
    hub.receive = (_, __, payload) => {
      if (payload[0] === 97) link.send(payload);
      return 0;
    };
    wire.stalled = true;
    const rounds = [1, 1, 1, 2, 400].map((count) =>
      Buffer.concat([...Array(count).fill(text(`a${"x".repeat(99)}`)), text("b".repeat(60_000))]),
    );
    for (const chunk of rounds) {
      wire.emit("data", Buffer.from(chunk));
      await turn();
    }
    const queued = link.queued();
    expect(queued).toBe(405 * 102);
    wire.goOn();
    await turn();
    const [, ...waited] = wire.writes.flat();
    const memory = new Set(waited.map(({ buffer }) => buffer));
    const kept = [...memory].reduce((sum, { byteLength }) => sum + byteLength, 0);
    expect(kept).toBeLessThanOrEqual(2 * queued);
  });
});

describe("freeing", () => {
  /** In its own memory, as node reads it. */
  const chunkOf = (...frames: Buffer[]): Buffer =>
    Buffer.from(Uint8Array.from(Buffer.concat(frames)).buffer);
  const echoing = () => {
    const connection = connected();
    connection.hub.receive = (_, __, payload) => {
      connection.link.send(payload);
      return 0;
    };
    return connection;
  };
  const isFreed = ({ buffer }: Buffer): boolean => (buffer as ArrayBuffer).detached;

  it("releases all of a large message that was read in one piece once it is written", async () => {
    const { wire } = echoing();
    const chunks = Array.from({ length: 20 }, (_, i) => chunkOf(text("x".repeat(16_000 + i))));
    for (const chunk of chunks) {
      wire.emit("data", chunk);
      await turn();
    }
    expect(chunks.filter((chunk) => !isFreed(chunk))).toEqual([]);
  });

  it("keeps what is not written, and memory that is shared or small", async () => {
    const { wire } = echoing();
    const two = chunkOf(text("y".repeat(30_000)), text("z".repeat(3000)));
    const begun = chunkOf(text("x".repeat(16_000)), text("rest").subarray(0, 4));
    const rest = chunkOf(text("rest").subarray(4));
    const small = chunkOf(text("s".repeat(300)));
    for (const chunk of [two, begun, rest, small]) {
      wire.emit("data", chunk);
      await turn();
    }
    wire.stalled = true;
    const waits = chunkOf(text("w".repeat(16_000)));
    wire.emit("data", waits);
    await turn();
    expect([two, begun, rest, small, waits].filter(isFreed)).toEqual([]);
  });

  it("releases all of a large message that waited, or that is not forwarded", async () => {
    const { wire, hub, link } = echoing();
    wire.stalled = true;
    const [waits, next] = [chunkOf(text("w".repeat(16_000))), chunkOf(text("n".repeat(16_000)))];
    for (const chunk of [waits, next]) {
      wire.emit("data", chunk);
      await turn();
    }
    expect([waits, next].map(isFreed)).toEqual([false, false]);
    wire.goOn();
    await turn();
    wire.goOn();
    await turn();
    expect([waits, next].map(isFreed)).toEqual([true, true]);
    hub.receive = (_, __, payload) => {
      link.unused?.(payload);
      return 0;
    };
    const refused = chunkOf(text("r".repeat(16_000)));
    wire.emit("data", refused);
    const twoMessages = chunkOf(text("s".repeat(16_000)), text("more"));
    wire.emit("data", twoMessages);
    expect([refused, twoMessages].map(isFreed)).toEqual([true, false]);
  });

  it("counts for V8's collection exactly what it has not freed", async () => {
    const { wire, hub, link, young } = echoing();
    const count = vi.spyOn(young, "add");
    const notFreed = () => count.mock.calls.reduce((sum, [bytes]) => sum + bytes, 0);
    wire.emit("data", chunkOf(text("x".repeat(16_000))));
    await turn();
    expect(notFreed()).toBe(0);
    const frame = text("y".repeat(16_000));
    const pieces = [frame.subarray(0, 9000), frame.subarray(9000)].map((piece) => chunkOf(piece));
    for (const piece of pieces) wire.emit("data", piece);
    await turn();
    expect(pieces.map(isFreed)).toEqual([true, false]); // both are copied, and the second is small
    expect(notFreed()).toBe(pieces[1]?.length);
    count.mockClear();
    hub.receive = () => 0;
    link.send("z".repeat(40_000)); // created here, and never counted
    await turn();
    expect(notFreed()).toBe(0);
  });

  it("never takes a byte from what is forwarded, however it arrives and stalls", async () => {
    const LENGTHS = fc.array(fc.oneof(fc.nat(300), fc.integer({ min: 4000, max: 20_000 })), {
      maxLength: 8,
    });
    const STALLS = fc.array(fc.boolean(), { maxLength: 40 });
    await fc.assert(
      fc.asyncProperty(LENGTHS, CUTS, STALLS, async (lengths, cuts, stalls) => {
        const { wire } = echoing();
        const texts = lengths.map((length, i) => String.fromCharCode(97 + i).repeat(length));
        const stream = Buffer.concat(texts.map(text));
        let at = 0;
        for (const [i, size] of [...cuts, stream.length].entries()) {
          if (stalls[i] ?? false) wire.stalled = true;
          else wire.goOn();
          wire.emit("data", chunkOf(stream.subarray(at, at + size)));
          if (i % 2 === 0) await turn();
          at += size;
        }
        await turn();
        wire.goOn();
        await turn();
        expect(wire.written.equals(Buffer.concat(texts.map(textFrame)))).toBe(true);
        wire.destroy();
      }),
      { numRuns: RUNS },
    );
  });
});

describe("closing", () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it("sends the reason after queued frames, waits for the peer's close, and ends", async () => {
    const { wire, link, hub, heard } = connected();
    link.send("last");
    link.close(1012, "RESTARTING");
    link.send("too late");
    await turn();
    const close = Buffer.from([0x88, 12, 1012 >> 8, 1012 & 0xff, ...Buffer.from("RESTARTING")]);
    expect(wire.written.equals(Buffer.concat([textFrame("last"), close]))).toBe(true);
    expect(wire.ended).toBe(false);
    wire.emit("data", text("not read any more"));
    wire.emit("data", encode({ first: 0x88, payload: Buffer.alloc(0), mask: Buffer.alloc(4) }));
    expect(heard).toEqual([]);
    wire.push(null);
    await turn();
    expect(wire.ended).toBe(true);
    await turn();
    expect(hub.closed).toHaveBeenCalledTimes(1);
  });

  it.each([
    ["closes", encode({ first: 0x88, payload: Buffer.alloc(0), mask: Buffer.alloc(4) })],
    ["breaks RFC 6455", Buffer.from([0xf3, 0x80, 0, 0, 0, 0])],
    ["ends its stream", null],
  ])(
    "tells the hub at once when its peer %s, and not only when the socket is gone",
    async (_how, bytes) => {
      const { wire, hub } = connected();
      if (bytes === null) wire.emit("end");
      else wire.emit("data", bytes);
      await turn();
      expect(hub.ended).toHaveBeenCalledTimes(1);
      expect(hub.closed).not.toHaveBeenCalled();
      wire.destroy();
    },
  );

  it("repeats no reason of a close that is not UTF-8", async () => {
    const { wire } = connected();
    const payload = Buffer.from([1000 >> 8, 1000 & 0xff, 0xff]);
    wire.emit("data", encode({ first: 0x88, payload, mask: Buffer.alloc(4) }));
    await turn();
    expect([...wire.written]).toEqual([0x88, 2, 1002 >> 8, 1002 & 0xff]);
  });

  it("gives a peer five seconds that does not answer the close, or that ends without one", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    for (const begin of ["relay", "peer"]) {
      const { wire, link, hub } = connected();
      wire.stalled = true;
      link.send("last");
      await turn();
      if (begin === "relay") link.close(1008, "");
      else wire.emit("end");
      vi.advanceTimersByTime(4999);
      expect(wire.destroyed).toBe(false);
      vi.advanceTimersByTime(1);
      expect(wire.destroyed).toBe(true);
      await turn();
      expect(hub.closed).toHaveBeenCalledTimes(1);
      expect(vi.getTimerCount()).toBe(0);
    }
  });

  it("accepts pings at the rate of messages, then ends the connection", () => {
    const { wire, hub } = connected();
    const ping = encode({ first: 0x89, payload: Buffer.from("x"), mask: Buffer.alloc(4) });
    wire.emit("data", Buffer.concat(Array(BURST).fill(ping)));
    expect(hub.brokeFraming).not.toHaveBeenCalled();
    wire.emit("data", Buffer.from(ping));
    expect(hub.brokeFraming).toHaveBeenCalledTimes(1);
  });

  it("survives a hub that fails when the connection ends", async () => {
    const { wire, hub, log } = connected();
    hub.closed.mockImplementation(() => {
      throw new Error("a bug");
    });
    wire.destroy();
    await turn();
    expect(hub.closed).toHaveBeenCalledTimes(1);
    expect(log.error).toHaveBeenCalledTimes(1);
  });

  it("answers pings until as much is queued as a connection may have", async () => {
    const { wire } = connected();
    wire.stalled = true;
    const ping = encode({ first: 0x89, payload: Buffer.alloc(125), mask: Buffer.alloc(4) });
    wire.emit("data", Buffer.concat(Array(BURST - 1).fill(ping)));
    await turn();
    expect(wire.written.length).toBeGreaterThanOrEqual(OUTBOX);
    expect(wire.written.length).toBeLessThan(OUTBOX + ping.length);
  });
});
