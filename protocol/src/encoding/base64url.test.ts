/**
 * Compared with Buffer, which is lenient, by re-encoding what it read; with the engine's own
 * methods and without them, as on older engines.
 */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { base64urlPart, fromBase64url, isBase64urlText, toBase64url } from "./base64url.ts";

/** Strict by construction: the only valid text for these bytes is the one that Buffer writes. */
const oracle = (text: string): Uint8Array | null => {
  const bytes = Buffer.from(text, "base64url");
  return bytes.toString("base64url") === text ? new Uint8Array(bytes) : null;
};

const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const almost = fc.string({
  unit: fc.oneof(
    { weight: 12, arbitrary: fc.constantFrom(...ALPHABET) },
    { weight: 1, arbitrary: fc.constantFrom("=", "+", "/", " ", "\n", "\0", "é", "Ł", "@", "[") },
  ),
  maxLength: 40,
});

const NATIVE = [
  [Uint8Array.prototype, "toBase64"],
  [Uint8Array, "fromBase64"],
] as const;

describe.each(["the engine's methods", "loops"])("base64url by %s", (way) => {
  const kept = NATIVE.map(([owner, name]) => Object.getOwnPropertyDescriptor(owner, name) ?? {});
  beforeAll(() => {
    for (const [owner, name] of NATIVE)
      if (way === "loops") Object.defineProperty(owner, name, { value: undefined });
  });
  afterAll(() => {
    for (const [i, [owner, name]] of NATIVE.entries())
      Object.defineProperty(owner, name, kept[i] as PropertyDescriptor);
  });

  it("writes what Buffer writes, and reads it back", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        const text = toBase64url(bytes);
        expect(text).toBe(Buffer.from(bytes).toString("base64url"));
        expect(fromBase64url(text)).toEqual(bytes);
      }),
    );
  });

  it("reads exactly the texts that Buffer would write", () => {
    fc.assert(
      fc.property(almost, (text) => {
        expect(fromBase64url(text)).toEqual(oracle(text));
      }),
      { numRuns: 2000 },
    );
  });

  it("accepts 4 of 16 and 16 of 64 last characters, those without spare bits", () => {
    const accepted = (head: string) =>
      [...ALPHABET].filter((last) => fromBase64url(head + last) !== null);
    expect(accepted("A")).toEqual(["A", "Q", "g", "w"]);
    expect(accepted("AA")).toHaveLength(16);
    expect(accepted("AAA")).toHaveLength(64);
  });

  it.each([0, 1, 2, 3, 31, 32, 33, 65535, 65536, 65537])("handles %i bytes", (length) => {
    const bytes = new Uint8Array(length).map((_, i) => (i * 7 + 13) & 255);
    const text = toBase64url(bytes);
    // Compared as a whole: printing a difference of 65,536 numbers takes minutes.
    expect(text === Buffer.from(bytes).toString("base64url")).toBe(true);
    expect(Buffer.from(bytes).equals(fromBase64url(text) ?? new Uint8Array(1))).toBe(true);
  });

  it.each([
    "A",
    "AAAAA",
    "AA==",
    "AAA=",
    "A A",
    "AAA AA",
    " AAAA",
    "AAAA\n",
    "A+A",
    "A/A",
    "\0AAA",
  ])("refuses %j, which no bytes are written as", (text) => {
    expect(fromBase64url(text)).toBe(null);
  });

  it("reads a part of a text as if it were all", () => {
    expect(base64urlPart('"AAEC"', 1, 5)).toEqual(Uint8Array.of(0, 1, 2));
    expect(base64urlPart("AAECA", 0, 5)).toBe(null);
  });

  it("accepts every character of its alphabet and no others below 256", () => {
    for (let code = 0; code < 256; code++) {
      const char = String.fromCharCode(code);
      expect(isBase64urlText(char), `U+${code.toString(16)}`).toBe(ALPHABET.includes(char));
    }
  });
});
