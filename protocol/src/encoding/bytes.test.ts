import { createHash } from "node:crypto";
import { crc32 as zlibCrc32 } from "node:zlib";
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
import { crc32 } from "./crc32.ts";

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

describe("crc32", () => {
  it("is the CRC of IEEE 802.3", () => {
    expect(crc32(asciiBytes("123456789"))).toBe(0xcbf43926);
    fc.assert(
      fc.property(fc.uint8Array(), (bytes) => {
        expect(crc32(bytes)).toBe(zlibCrc32(bytes));
      }),
    );
  });

  it("is unsigned, even if the top bit is set", () => {
    const high = Array.from({ length: 50 }, (_, i) => createHash("sha256").update(`${i}`).digest());
    for (const bytes of high) expect(crc32(bytes)).toBeGreaterThanOrEqual(0);
  });
});
