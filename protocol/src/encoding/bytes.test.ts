import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  asciiBytes,
  asciiText,
  concatBytes,
  equalBytes,
  equalTexts,
  fromHex,
  toHex,
  utf8Bytes,
} from "./bytes.ts";

const codePoint = fc.integer({ min: 0, max: 0x10ffff }).map((code) => String.fromCodePoint(code));
const anyText = fc.string({
  unit: fc.integer({ min: 0, max: 0xffff }).map((c) => String.fromCharCode(c)),
  maxLength: 30,
});

describe("bytes and texts", () => {
  it("writes UTF-8 like TextEncoder, including lone surrogates", () => {
    fc.assert(
      fc.property(fc.oneof(anyText, fc.string({ unit: codePoint })), (text) => {
        expect(utf8Bytes(text)).toEqual(new Uint8Array(new TextEncoder().encode(text)));
      }),
      { numRuns: 300 },
    );
  });

  // Of each length of a character, the first and the last, and surrogates that have no other half.
  it.each([
    ...["\0", "\u007f", "\u0080", "\u07ff", "\u0800", "\ud7ff", "\ue000", "\uffff"],
    ...["\ud800\udc00", "\ud800\udfff", "\udbff\udc00", "\udbff\udfff"],
    ...["\ud800", "\udbff", "\udc00", "\udfff", "\ud800\ud800", "\udc00\udc00", "\udfff\udc00"],
    ...["\ud800\ue000", "\ud800\ud800\udc00", "\ud800a"],
  ])("writes %j like TextEncoder, alone and within a text", (text) => {
    for (const each of [text, `a${text}`, `${text}a`, `\udc00${text}`]) {
      expect(utf8Bytes(each)).toEqual(new Uint8Array(new TextEncoder().encode(each)));
    }
  });

  it("maps ASCII one to one", () => {
    const all = String.fromCharCode(...Array.from({ length: 128 }, (_, i) => i));
    expect(asciiText(asciiBytes(all))).toBe(all);
    expect(asciiBytes(all)).toEqual(new Uint8Array(Buffer.from(all, "latin1")));
  });

  it("writes hex like Buffer, reads either case, and refuses anything else", () => {
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        const text = Buffer.from(bytes).toString("hex");
        expect(toHex(bytes)).toBe(text);
        expect(fromHex(text)).toEqual(bytes);
        expect(fromHex(text.toUpperCase())).toEqual(bytes);
      }),
    );
    for (const text of ["0", "0g", "g0", "00 ", "0x", "é0", "000"])
      expect(fromHex(text)).toBeNull();
  });

  it("concatenates, and keeps its parts untouched", () => {
    const a = Uint8Array.of(1, 2);
    const both = concatBytes(a, Uint8Array.of(3));
    both[0] = 9;
    expect([...both]).toEqual([9, 2, 3]);
    expect([...a]).toEqual([1, 2]);
  });

  it("compares lengths and every position", () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 1 }),
        fc.nat(),
        fc.integer({ min: 1, max: 255 }),
        (a, at, mask) => {
          const b = a.slice();
          expect(equalBytes(a, b)).toBe(true);
          expect(equalBytes(a, a.subarray(1))).toBe(false);
          b[at % b.length]! ^= mask;
          expect(equalBytes(a, b)).toBe(false);
        },
      ),
    );
    fc.assert(
      fc.property(anyText, anyText, (a, b) => {
        expect(equalTexts(a, b)).toBe(a === b);
      }),
    );
    expect(equalTexts("ab", "ab")).toBe(true);
    expect(equalTexts("ab", "aB")).toBe(false);
  });
});
