import fc from "fast-check";
import { expect, it } from "vitest";
import { MAX_KEPT_BYTES, NumberedBytes } from "./numbered-bytes.ts";

/** Twice as much as a side keeps: there may come some more before a port has paused. */
const ROOM = 2 * MAX_KEPT_BYTES;

/** All that is kept, in pieces of at most `max`. */
const readAll = (bytes: NumberedBytes, max: number): number[] => {
  const all: number[] = [];
  for (let at = bytes.from; at < bytes.end; ) {
    const part = bytes.read(at, max);
    if (part.length === 0 || part.length > max) throw new Error(`${part.length} bytes at ${at}`);
    all.push(...part);
    at += part.length;
  }
  return all;
};

const change = fc.oneof(
  fc.record({ kind: fc.constant("push" as const), n: fc.nat({ max: 30 }) }),
  fc.record({
    kind: fc.constantFrom("skip" as const, "drop" as const, "truncate" as const),
    n: fc.nat({ max: 40 }),
  }),
);

it("keeps each byte under its number, whatever is appended, skipped and forgotten", () => {
  const start = fc.tuple(fc.nat({ max: 3 }), fc.nat({ max: 50 }));
  fc.assert(
    fc.property(
      start,
      fc.array(change),
      fc.integer({ min: 1, max: 9 }),
      ([laps, under], all, max) => {
        const at = Math.max(0, laps * ROOM - under);
        let bytes = new NumberedBytes(at);
        let [from, kept, next] = [at, [] as number[], 0];
        for (const { kind, n } of all) {
          const end = from + kept.length;
          if (kind === "push") {
            const more = Array.from({ length: n }, () => next++ & 255);
            bytes.push(Uint8Array.from(more));
            kept = [...kept, ...more];
          } else if (kind === "skip") {
            bytes.skip(n);
            [from, kept] = [end + n, []];
          } else if (kind === "drop") {
            // Also before what is kept, and after it.
            bytes.drop(from + n - 5);
            const gone = Math.min(kept.length, Math.max(0, n - 5));
            [from, kept] = [from + gone, kept.slice(gone)];
          } else {
            bytes.truncate(end - n + 5);
            kept = kept.slice(0, Math.max(0, kept.length - Math.max(0, n - 5)));
          }
          expect([bytes.from, bytes.end, bytes.size]).toEqual([
            from,
            from + kept.length,
            kept.length,
          ]);
          expect(readAll(bytes, max)).toEqual(kept);
        }
        bytes = bytes.renumbered(7);
        expect([bytes.from, readAll(bytes, max)]).toEqual([7, kept]);
      },
    ),
  );
});

it("has nothing to read of what is not kept any more, or not yet", () => {
  const bytes = new NumberedBytes(10);
  expect(bytes.read(10, 5)).toHaveLength(0);
  bytes.push(Uint8Array.of(1, 2, 3));
  bytes.drop(11);
  expect([9, 10, 13, ROOM + 1].map((at) => bytes.read(at, 5).length)).toEqual([0, 0, 0, 0]);
  expect([...bytes.read(11, 5)]).toEqual([2, 3]);
});

it.each([1, ROOM - 1, ROOM, ROOM + 3, 3 * ROOM + 5])(
  "drops the oldest bytes where there is no room for %i more",
  (size) => {
    const bytes = new NumberedBytes();
    bytes.push(new Uint8Array(ROOM));
    expect([bytes.from, bytes.size]).toEqual([0, ROOM]);
    bytes.push(Uint8Array.of(1, 2));
    expect([bytes.from, bytes.size, bytes.read(ROOM, 9).join()]).toEqual([2, ROOM, "1,2"]);
    const more = Uint8Array.from({ length: size }, (_, n) => n % 251);
    bytes.push(more);
    const { from, end } = bytes;
    expect([from, end]).toEqual([2 + size, ROOM + 2 + size]);
    const parts = [bytes.read(from, ROOM)];
    parts.push(bytes.read(from + (parts[0] as Uint8Array).length, ROOM));
    const kept = Buffer.concat(parts);
    const all = Buffer.concat([new Uint8Array(ROOM), Uint8Array.of(1, 2), more]);
    expect(kept.equals(all.subarray(-ROOM))).toBe(true);
  },
);
