import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { type FrameFault, FrameFilter } from "./frame-filter.ts";
import { textFrame } from "./frames.ts";
import { HeldBytes } from "./held-bytes.ts";

const MAX = 10;
const MASK = Buffer.from([1, 2, 3, 4]);

/** A masked frame as a peer sends it; the payload is left unmasked, which does not matter here. */
const frame = (opcode: number, fin: boolean, payload: Buffer): Buffer => {
  const plain = textFrame(payload);
  const head = plain.subarray(0, plain.length - payload.length);
  head[0] = (fin ? 0x80 : 0) | opcode;
  head[1] = (head[1] as number) | 0x80;
  return Buffer.concat([head, MASK, payload]);
};

const bytes = (length: number): Buffer => Buffer.alloc(length, "x");

const filterOf = (maxMessageBytes = MAX, heldBytes?: HeldBytes, nowMs = () => 0): FrameFilter =>
  new FrameFilter({
    maxMessageBytes,
    nowMs,
    ...(heldBytes === undefined ? {} : { heldBytes }),
  });

const cut = (stream: Buffer, sizes: readonly number[] = []): Buffer => {
  const filter = filterOf();
  const out: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, stream.length]) {
    filter.take(stream.subarray(at, at + size), (piece) => out.push(Buffer.from(piece)));
    at += size;
  }
  return Buffer.concat(out);
};

describe("FrameFilter", () => {
  it("cuts a message to one byte more than the limit and leaves its neighbours alone", () => {
    const stream = Buffer.concat([
      frame(1, true, bytes(MAX)),
      frame(1, true, bytes(70_000)),
      frame(9, true, bytes(MAX + 5)),
      frame(1, true, bytes(MAX + 1)),
      frame(2, true, bytes(300)),
      frame(1, true, bytes(2)),
    ]);
    expect(cut(stream)).toEqual(
      Buffer.concat([
        frame(1, true, bytes(MAX)),
        frame(1, true, bytes(MAX + 1)),
        frame(9, true, bytes(MAX + 5)),
        frame(1, true, bytes(MAX + 1)),
        frame(2, true, bytes(MAX + 1)),
        frame(1, true, bytes(2)),
      ]),
    );
  });

  it("counts a message over its fragments, without the control frames in between", () => {
    const stream = Buffer.concat([
      frame(1, false, bytes(8)),
      frame(9, true, bytes(4)),
      frame(0, false, bytes(8)),
      frame(0, true, bytes(8)),
      frame(1, true, bytes(8)),
    ]);
    expect(cut(stream)).toEqual(
      Buffer.concat([
        frame(1, false, bytes(8)),
        frame(9, true, bytes(4)),
        frame(0, false, bytes(3)),
        frame(0, true, bytes(0)),
        frame(1, true, bytes(8)),
      ]),
    );
  });

  it("of 100 MB lets only the limit and one byte through", () => {
    const filter = filterOf();
    let through = 0;
    const count = (piece: Buffer): void => {
      through += piece.length;
    };
    const message = frame(1, true, bytes(100_000_000));
    for (let at = 0; at < message.length; at += 65_536) {
      filter.take(message.subarray(at, at + 65_536), count);
    }
    expect(through).toBe(frame(1, true, bytes(MAX + 1)).length);
  });

  it("passes on an unbroken chunk unchanged", () => {
    const chunk = Buffer.concat([frame(1, true, bytes(3)), frame(1, true, bytes(4))]);
    const out: Buffer[] = [];
    filterOf().take(chunk, (piece) => out.push(piece));
    expect(out).toHaveLength(1);
    expect(out[0]?.buffer).toBe(chunk.buffer);
  });

  it("works wherever the chunks end, and passes what is within the limit unchanged", () => {
    const message = fc.record({
      opcode: fc.constantFrom(1, 2, 9, 10),
      length: fc.oneof(fc.nat(MAX), fc.nat(400), fc.constantFrom(65_535, 65_536)),
    });
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.nat(70_000)));
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), sizes, (messages, pieces) => {
        const limit = (each: { opcode: number; length: number }): number =>
          each.opcode < 8 ? Math.min(each.length, MAX + 1) : each.length;
        for (const each of messages) {
          if (each.opcode > 8) each.length = Math.min(each.length, 125);
        }
        const sent = messages.map((each) => frame(each.opcode, true, bytes(each.length)));
        const seen = messages.map((each) => frame(each.opcode, true, bytes(limit(each))));
        expect(cut(Buffer.concat(sent), pieces).equals(Buffer.concat(seen))).toBe(true);
      }),
    );
  });

  it("passes 64 fragments with any control frames in between, and names the rule that the 65th breaks", () => {
    const fragments = (count: number): Buffer =>
      Buffer.concat(
        Array.from({ length: count }, (_, i) => [
          frame(i === 0 ? 1 : 0, i === count - 1, bytes(0)),
          frame(10, true, bytes(3)),
        ]).flat(),
      );
    const filter = filterOf();
    const none = (): void => undefined;
    for (let i = 0; i < 5; i++) expect(filter.take(fragments(64), none)).toBeNull();
    expect(filter.unfinishedMessage).toBe(0);
    const fault = filter.take(fragments(65), none);
    expect(fault).toMatchObject({ kind: "frames", detail: expect.stringContaining("64") });
  });

  it("applies the rate of messages to frames without a message of their own", () => {
    let now = 0;
    const filter = filterOf(MAX, undefined, () => now);
    const pongs = (count: number): FrameFault | null =>
      filter.take(Buffer.concat(Array(count).fill(frame(10, true, bytes(1)))), () => undefined);
    expect(pongs(2000)).toBeNull();
    now += 1000;
    expect(pongs(1000)).toBeNull();
    expect(pongs(1)).toMatchObject({ kind: "frames" });
  });

  it("applies the rate only to a message's first fragment, and numbers the messages", () => {
    const filter = filterOf(MAX, undefined, () => 0);
    const begin = Buffer.concat([frame(1, false, bytes(0)), frame(0, false, bytes(0))]);
    const end = frame(0, true, bytes(0));
    const numbers = [1, 2].map(() => {
      expect(filter.take(begin, () => undefined)).toBeNull();
      const number = filter.unfinishedMessage;
      expect(filter.take(Buffer.concat([end, begin]), () => undefined)).toBeNull();
      expect(filter.unfinishedMessage).toBe(number + 1);
      filter.take(end, () => undefined);
      return number;
    });
    expect(numbers).toEqual([1, 3]);
    const message = Buffer.concat([begin, end]);
    for (let i = 4; i < 2000; i++) expect(filter.take(message, () => undefined)).toBeNull();
  });

  it("keeps no chunk alive for a fragment, nor for a frame that arrived in pieces", () => {
    const chunk = Buffer.concat([
      frame(1, false, bytes(1)),
      frame(10, true, bytes(3)),
      frame(0, true, bytes(1)),
      frame(1, true, bytes(8)).subarray(0, 9),
    ]);
    const filter = filterOf();
    const out: Buffer[] = [];
    filter.take(chunk, (piece) => out.push(piece));
    filter.take(frame(1, true, bytes(8)).subarray(9), (piece) => out.push(piece));
    expect(out.map((piece) => [piece.length, piece.buffer === chunk.buffer])).toEqual([
      [7, false],
      [9, true], // the pong, handled at once
      [7, false],
      [14, false],
    ]);
    for (const own of [0, 2, 3]) expect(out[own]?.buffer.byteLength).toBe(out[own]?.length);
  });

  it("holds no more than what arrived, whatever length the frame announces", () => {
    const held = new HeldBytes();
    const filter = filterOf(65_536, held);
    const message = frame(1, true, bytes(60_000));
    for (let at = 0; at < 20_000; at++) filter.take(message.subarray(at, at + 1), () => undefined);
    expect(held.held).toBeLessThanOrEqual(2 * 20_000);
    filter.take(message.subarray(20_000), () => undefined);
    expect(held.held).toBe(0);
  });

  it("over the limit of all connections closes only unauthenticated ones that hold more than an auth", () => {
    const held = new HeldBytes(10_000);
    const half = frame(1, true, bytes(60_000)).subarray(0, 30_000);
    const known = filterOf(65_536, held);
    expect(known.take(half, () => undefined, true)).toBeNull();
    const modest = filterOf(65_536, held);
    expect(modest.take(half.subarray(0, 500), () => undefined, false)).toBeNull();
    const greedy = filterOf(65_536, held);
    expect(greedy.take(half, () => undefined, false)).toEqual({ kind: "memory" });
    greedy.end();
    modest.end();
    known.end();
    expect(held.held).toBe(0);
  });

  it("passes only the close frame once the connection is to end", () => {
    const message = frame(1, true, bytes(8));
    const filter = filterOf();
    const out: Buffer[] = [];
    filter.take(message.subarray(0, 9), () => undefined);
    filter.end();
    const close = frame(8, true, bytes(2));
    const rest = [message.subarray(9), frame(1, false, bytes(5)), frame(9, true, bytes(4)), close];
    filter.take(Buffer.concat(rest), (piece) => out.push(piece));
    expect(Buffer.concat(out)).toEqual(close);
  });
});
