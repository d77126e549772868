import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { textFrame } from "./frames.ts";
import { OversizeFilter } from "./oversize-filter.ts";

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

const cut = (stream: Buffer, sizes: readonly number[] = []): Buffer => {
  const oversizeFilter = new OversizeFilter(MAX);
  const out: Buffer[] = [];
  let at = 0;
  for (const size of [...sizes, stream.length]) {
    oversizeFilter.take(stream.subarray(at, at + size), (piece) => out.push(Buffer.from(piece)));
    at += size;
  }
  return Buffer.concat(out);
};

describe("OversizeFilter", () => {
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

  it("counts a message over its fragments, control frames in between not", () => {
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

  it("lets no more than the limit and one byte through of 100 MB", () => {
    const oversizeFilter = new OversizeFilter(MAX);
    let through = 0;
    const count = (piece: Buffer): void => {
      through += piece.length;
    };
    const message = frame(1, true, bytes(100_000_000));
    for (let at = 0; at < message.length; at += 65_536) {
      oversizeFilter.take(message.subarray(at, at + 65_536), count);
    }
    expect(through).toBe(frame(1, true, bytes(MAX + 1)).length);
  });

  it("hands on an unbroken chunk as it is", () => {
    const chunk = Buffer.concat([frame(1, true, bytes(3)), frame(1, true, bytes(4))]);
    const out: Buffer[] = [];
    new OversizeFilter(MAX).take(chunk, (piece) => out.push(piece));
    expect(out).toHaveLength(1);
    expect(out[0]?.buffer).toBe(chunk.buffer);
  });

  it("does not care where the chunks end, and passes what is within the limit unchanged", () => {
    const message = fc.record({
      opcode: fc.constantFrom(1, 2, 9, 10),
      length: fc.oneof(fc.nat(MAX), fc.nat(400), fc.constantFrom(65_535, 65_536)),
    });
    const sizes = fc.array(fc.oneof(fc.integer({ min: 1, max: 20 }), fc.nat(70_000)));
    fc.assert(
      fc.property(fc.array(message, { maxLength: 8 }), sizes, (messages, pieces) => {
        const limit = (each: { opcode: number; length: number }): number =>
          each.opcode < 8 ? Math.min(each.length, MAX + 1) : each.length;
        const sent = messages.map((each) => frame(each.opcode, true, bytes(each.length)));
        const seen = messages.map((each) => frame(each.opcode, true, bytes(limit(each))));
        expect(cut(Buffer.concat(sent), pieces).equals(Buffer.concat(seen))).toBe(true);
      }),
    );
  });
});
