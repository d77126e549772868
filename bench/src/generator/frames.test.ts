import fc from "fast-check";
import { expect, test } from "vitest";
import { FrameSplitter } from "./frames.ts";

/** A different byte for each length, so that frames cannot be confused. */
function payload(length: number): Buffer {
  return Buffer.alloc(length, length % 251);
}

/** As a server writes it. */
function frame(length: number): Buffer {
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10);
  head[0] = 0x81;
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127;
  if (head.length === 4) head.writeUInt16BE(length, 2);
  if (head.length === 10) head.writeUInt32BE(length, 6);
  return Buffer.concat([head, payload(length)]);
}

test("a stream is split into its frames, wherever it is cut", () => {
  const length = fc.constantFrom<number>(0, 1, 15, 125, 126, 300, 70_000);
  const lengths = fc.array(length, { maxLength: 6 });
  fc.assert(
    fc.property(lengths, fc.array(fc.nat(2_000), { minLength: 1 }), (sizes, cuts) => {
      const stream = Buffer.concat(sizes.map(frame));
      const splitter = new FrameSplitter();
      const payloads: Buffer[] = [];
      const take = (bytes: Buffer, from: number, to: number): void => {
        payloads.push(Buffer.from(bytes.subarray(from, to)));
      };
      let at = 0;
      for (let i = 0; at < stream.length; i++) {
        const end = at + 1 + (cuts[i % cuts.length] as number);
        const chunk = stream.subarray(at, end);
        splitter.split(chunk, chunk.length, { take });
        at = end;
      }
      const all = Buffer.concat(sizes.map((size) => payload(size)));
      expect(Buffer.concat(payloads).equals(all)).toBe(true);
    }),
  );
});

test("a close frame is an error", () => {
  expect(() => new FrameSplitter().split(Buffer.from([0x88, 0]), 2, { take: () => {} })).toThrow(
    "closed",
  );
});
