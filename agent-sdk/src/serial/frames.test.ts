/** Frames: their bytes on the line, and the property that resynchronization depends on. */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { decodeFrame, encodeFrame, frameBytes, plainChecksum } from "./frames.ts";
import { FrameReader } from "./reader.ts";

interface Found {
  readonly type: number;
  readonly body: number[];
}

const reader = (maxBody = 2000) => {
  const found: Found[] = [];
  const made = new FrameReader(maxBody, plainChecksum, (type, body) =>
    found.push({ type, body: [...body] }),
  );
  return { found, reader: made };
};

const encode = (type: number, body: readonly number[]): Uint8Array =>
  encodeFrame(type, Uint8Array.from(body), plainChecksum);

/** Bytes with many zeros and runs around the length of COBS's blocks. */
const bodies = fc.oneof(
  fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 40 }),
  fc.array(fc.constantFrom(0, 0, 1, 255), { maxLength: 40 }),
  fc.integer({ min: 245, max: 262 }).map((length) => new Array<number>(length).fill(7)),
  fc.integer({ min: 500, max: 514 }).map((length) => new Array<number>(length).fill(9)),
);

it("on the line: border, blocks preceded by their lengths, checksum, border", () => {
  const hex = Buffer.from(encode(4, [0x11, 0x00, 0x22])).toString("hex");
  // 00 | 03 04 11 | 06 22 + CRC-32 of 04 11 00 22 | 00
  const crc = plainChecksum(Uint8Array.from([4, 0x11, 0, 0x22]))
    .toString(16)
    .padStart(8, "0");
  expect(hex).toBe(`0003041106${"22"}${crc}00`);
});

it("is invalid if a block begins with 0, which only separates frames", () => {
  expect(decodeFrame(new Uint8Array([0, 1, 1, 1, 1, 1, 1]), plainChecksum)).toBeNull();
});

it("reports how long a frame can get", () => {
  fc.assert(
    fc.property(bodies, (body) => {
      const bytes = encode(255, body);
      expect(bytes.length).toBeLessThanOrEqual(frameBytes(body.length));
      expect(bytes[0]).toBe(0);
      expect(bytes.indexOf(0, 1)).toBe(bytes.length - 1);
    }),
  );
});

/** What may happen to a frame or between two. */
type StreamPart =
  | { readonly kind: "frame"; readonly type: number; readonly body: readonly number[] }
  | { readonly kind: "garbage"; readonly bytes: readonly number[] }
  | {
      readonly kind: "lost";
      readonly type: number;
      readonly body: readonly number[];
      readonly at: number;
      readonly count: number;
    }
  | {
      readonly kind: "flipped";
      readonly type: number;
      readonly body: readonly number[];
      readonly at: number;
      readonly bits: number;
    };

const types = fc.integer({ min: 0, max: 255 });
const pieces: fc.Arbitrary<StreamPart> = fc.oneof(
  fc.record({ kind: fc.constant("frame" as const), type: types, body: bodies }),
  fc.record({
    kind: fc.constant("garbage" as const),
    bytes: fc.array(fc.integer({ min: 0, max: 255 }), { maxLength: 30 }),
  }),
  fc.record({
    kind: fc.constant("lost" as const),
    type: types,
    body: bodies,
    at: fc.nat(),
    count: fc.integer({ min: 1, max: 9 }),
  }),
  fc.record({
    kind: fc.constant("flipped" as const),
    type: types,
    body: bodies,
    at: fc.nat(),
    bits: fc.integer({ min: 1, max: 255 }),
  }),
);

const onLine = (piece: StreamPart): number[] => {
  if (piece.kind === "garbage") return [...piece.bytes];
  const bytes = [...encode(piece.type, piece.body)];
  if (piece.kind === "frame") return bytes;
  const at = piece.at % bytes.length;
  if (piece.kind === "lost") bytes.splice(at, piece.count);
  else bytes[at] = (bytes[at] as number) ^ piece.bits;
  return bytes;
};

describe("whatever garbage, whatever pieces, whatever loss", () => {
  it("a frame arrives whole or not at all, and the next good one always arrives", () => {
    fc.assert(
      fc.property(
        fc.array(pieces, { maxLength: 12 }),
        fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 8 }),
        (drawn, cuts) => {
          // Each body begins with its position, so that all frames differ.
          const line = drawn.map((piece, i) =>
            piece.kind === "garbage" ? piece : { ...piece, body: [i, ...piece.body] },
          );
          const bytes = Uint8Array.from(line.flatMap(onLine));
          const { found, reader: made } = reader();
          for (let at = 0, i = 0; at < bytes.length; i++) {
            const size = cuts[i % cuts.length] as number;
            made.receive(bytes.subarray(at, at + size));
            at += size;
          }
          // Nothing arrives that was not sent, nor twice or out of order.
          let next = 0;
          const sent = line.filter((piece) => piece.kind !== "garbage");
          for (const frame of found) {
            while (
              next < sent.length &&
              JSON.stringify({ type: sent[next]?.type, body: sent[next]?.body }) !==
                JSON.stringify(frame)
            ) {
              // And no frame that was complete on the line is missing.
              expect(sent[next]?.kind).not.toBe("frame");
              next++;
            }
            expect(next).toBeLessThan(sent.length);
            next++;
          }
          for (const rest of sent.slice(next)) expect(rest.kind).not.toBe("frame");
        },
      ),
      { numRuns: 1500 },
    );
  });

  it("what is too long is garbage, even if it never ends", () => {
    const { found, reader: made } = reader(10);
    made.receive(encode(1, new Array(40).fill(5)));
    made.receive(new Uint8Array(100_000).fill(1));
    made.receive(encode(2, [1]));
    expect(found).toEqual([{ type: 2, body: [1] }]);
    expect(made.counters).toEqual({ frames: 1, garbage: 2 });
  });
});
