import { decodeForRelay, encodePacket } from "@blindrelay/protocol/wire";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ScannedPacket, scanPacket } from "./scan.ts";

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const isPrintable = (bytes: Uint8Array): boolean =>
  bytes.every((byte) => byte >= 0x20 && byte <= 0x7f);

/** Throws if the scan disagrees with parsing; returns the result of the scan. */
const agree = (text: string, last: ScannedPacket | null): ScannedPacket | null => {
  const bytes = bytesOf(text);
  if (!isPrintable(bytes)) return null; // the reader does not let it through
  const scanned = scanPacket(bytes, last);
  if (scanned !== null) {
    const { head: _, ...packet } = scanned;
    expect(decodeForRelay(text)).toEqual(packet);
  }
  return scanned;
};

const SID = "Zm9vYmFyZm9vYmFyZm9vYg.YmFyZm9vYmFyZm9vYmFyZg";

test("reads what our SDKs write, and allocates nothing for the next packet of a session", () => {
  const first = agree(encodePacket("2", SID, 1, "p".repeat(22)), null);
  expect(first).toMatchObject({ sid: SID, first: "Zm9vYmFyZm9vYmFyZm9vYg" });
  expect(agree(encodePacket("2", SID, 4_294_967_295, ""), first)).toBe(first);
  const other = agree(encodePacket("1", SID, 2, "p"), first);
  expect(other).toMatchObject({ sid: SID });
  expect(other).not.toBe(first);
  expect(agree(encodePacket("2", "C", 0, "p"), first)).toMatchObject({ sid: "C", first: "C" });
});

test.each([
  ["a space", '{"v": "1","sid":"C","seq":1,"p":""}'],
  ["another order", '{"sid":"C","v":"1","seq":1,"p":""}'],
  ["one more field", '{"v":"1","sid":"C","seq":1,"p":"","q":""}'],
  ["a name twice", '{"v":"1","sid":"C","seq":1,"p":"","sid":"D"}'],
  ["no seq", '{"v":"1","sid":"C","seq":,"p":""}'],
  ["a seq that is no integer", '{"v":"1","sid":"C","seq":1.5,"p":""}'],
  ["a seq with a leading zero", '{"v":"1","sid":"C","seq":01,"p":""}'],
  ["a negative seq", '{"v":"1","sid":"C","seq":-1,"p":""}'],
  ["a seq beyond 2^53", '{"v":"1","sid":"C","seq":9007199254740993,"p":""}'],
  ["more behind it", '{"v":"1","sid":"C","seq":1,"p":""} '],
  ["an escape in p", '{"v":"1","sid":"C","seq":1,"p":"\\n"}'],
  ["an escape in the sid", '{"v":"1","sid":"\\u0043","seq":1,"p":""}'],
  ["no end", '{"v":"1","sid":"C","seq":1,"p":""'],
  ["a quote for a brace", '{"v":"1","sid":"C","seq":1,"p":"""'],
  ["a long sid", encodePacket("1", "s".repeat(200), 1, "")],
  ["nothing", ""],
])("leaves %s to the parser", (_, text) => {
  const last = agree('{"v":"1","sid":"C","seq":1,"p":""}', null);
  expect(last).not.toBeNull();
  expect(agree(text, null)).toBeNull();
  expect(agree(text, last)).toBeNull();
});

const PIECE = fc.constantFrom(
  '"',
  ",",
  ":",
  "{",
  "}",
  "0",
  "1",
  "9",
  "-",
  ".",
  "e",
  "p",
  "v",
  " ",
  "\\",
);
const TEXT = fc.string({
  maxLength: 8,
  unit: fc.constantFrom("a", "Z", "9", "_", "-", ".", "~", "{"),
});
/** A packet as our SDKs write it, changed in up to three places. */
const NEARLY = fc
  .tuple(
    fc.tuple(fc.constantFrom("1", "2", ""), TEXT, fc.oneof(fc.nat(), fc.maxSafeNat()), TEXT),
    fc.array(fc.tuple(fc.nat(), fc.nat(2), PIECE), { maxLength: 3 }),
  )
  .map(([[v, sid, seq, p], changes]) => {
    let text = encodePacket(v, sid, seq, p);
    for (const [where, cut, piece] of changes) {
      const at = where % (text.length + 1);
      text = text.slice(0, at) + piece + text.slice(at + cut);
    }
    return text;
  });

test("never disagrees with parsing, whatever the buffer contained; 10^7 were tried by hand", () => {
  let last: ScannedPacket | null = null;
  fc.assert(
    fc.property(NEARLY, (text) => {
      last = agree(text, last) ?? last;
    }),
    { numRuns: 5000 },
  );
  expect(last).not.toBeNull();
});
