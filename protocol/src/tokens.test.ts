import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { token as reference } from "../scripts/vectors/reference.ts";
import type { TokenKind } from "./tokens.ts";
import {
  makeToken,
  readToken,
  TOKEN_NAMES,
  TOKEN_PATTERN,
  TOKEN_PREFIXES,
  tokenKind,
  tokenProblem,
} from "./tokens.ts";

const KINDS = Object.keys(TOKEN_PREFIXES) as TokenKind[];
const kinds = fc.constantFrom(...KINDS);
const anyChar = fc.integer({ min: 0, max: 0xffff }).map((code) => String.fromCharCode(code));
const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe("a token", () => {
  it("is what an independent implementation makes, and can be read back", () => {
    fc.assert(
      fc.property(kinds, secret, (kind, bytes) => {
        const text = makeToken(kind, bytes);
        expect(text).toBe(reference(TOKEN_PREFIXES[kind], bytes));
        expect(readToken(text)).toEqual({ ok: true, kind, bytes });
        expect(tokenKind(text)).toBe(kind);
        expect(tokenProblem(text, kind)).toBeNull();
      }),
    );
  });

  it("is refused if any of its characters is changed", () => {
    const text = makeToken("e2e", new Uint8Array(32).fill(77));
    for (let at = 0; at < text.length; at++) {
      for (const char of ["0", "z", "_", "-", " ", "é"]) {
        if (text[at] === char) continue;
        const wrong = text.slice(0, at) + char + text.slice(at + 1);
        expect(readToken(wrong).ok, wrong).toBe(false);
      }
    }
  });

  it("is refused if shortened, extended or surrounded", () => {
    const text = makeToken("agent", new Uint8Array(32));
    for (let length = 0; length < text.length; length++) {
      expect(readToken(text.slice(0, length)).ok).toBe(false);
    }
    for (const wrong of [`${text}0`, ` ${text}`, `${text} `, `${text}\n`, text.toUpperCase()]) {
      expect(readToken(wrong).ok).toBe(false);
    }
  });

  const check = makeToken("e2e", new Uint8Array(32)).slice(-6);
  it.each([
    ["a text without a prefix", "hunter2", null, "form"],
    ["too few digits", "e2e_0", "e2e", "form"],
    ["a character that is no digit", `e2e_${"0".repeat(42)}-${check}`, "e2e", "form"],
    ["more than 32 bytes", `e2e_${"z".repeat(43)}${check}`, "e2e", "form"],
    ["another checksum", `e2e_${"0".repeat(42)}1${check}`, "e2e", "checksum"],
  ])("is refused with the reason: %s", (_what, text, kind, reason) => {
    expect(readToken(text)).toEqual({ ok: false, kind, reason });
  });

  it.each([0, 31, 33])("cannot be made from %i bytes", (length) => {
    expect(() => makeToken("e2e", new Uint8Array(length))).toThrow("32 bytes");
  });

  it("never throws when read, whatever the text", () => {
    fc.assert(
      fc.property(kinds, fc.string({ unit: anyChar, maxLength: 60 }), (kind, text) => {
        expect(readToken(text).ok).toBe(false);
        expect(readToken(TOKEN_PREFIXES[kind] + text).ok).toBe(false);
      }),
    );
  });
});

describe("the sentence about a misplaced secret", () => {
  it("names both kinds and no secret, for every pair", () => {
    for (const kind of KINDS) {
      for (const expected of KINDS) {
        if (kind === expected) continue;
        const text = makeToken(kind, new Uint8Array(32).fill(9));
        const sentence = `expected ${TOKEN_NAMES[expected]}, got ${TOKEN_NAMES[kind]}`;
        expect(tokenProblem(text, expected)).toBe(sentence);
      }
    }
  });

  it("distinguishes a mistyped secret from one of another form, and other texts from both", () => {
    const text = makeToken("e2e", new Uint8Array(32));
    expect(tokenProblem(`${text.slice(0, -1)}_`, "e2e")).toContain("checksum");
    expect(tokenProblem(text.slice(0, -1), "e2e")).toContain("length");
    expect(tokenProblem("hunter2", "e2e")).toBe(`expected ${TOKEN_NAMES.e2e}`);
    expect(tokenProblem(text.slice(0, -1), "account")).toContain("begins like");
  });
});

describe("the pattern for secret scanners", () => {
  const pattern = new RegExp(TOKEN_PATTERN, "g");

  it("finds every kind in the middle of a text", () => {
    for (const kind of KINDS) {
      const text = makeToken(kind, new Uint8Array(32).fill(200));
      for (const around of [`token=${text}&x`, `"${text}"`, `\n${text}\n`, `(${text}).`]) {
        expect(around.match(pattern)).toEqual([text]);
      }
    }
  });

  it("finds nothing inside a longer word", () => {
    const text = makeToken("e2e", new Uint8Array(32));
    expect(`x${text} ${text}0`.match(pattern)).toBeNull();
  });
});
