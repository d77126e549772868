/**
 * Reading UTF-8 JSON, compared with TextDecoder and JSON.parse; writing, compared with JSON.parse.
 */
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import {
  asciiJson,
  decodeJson,
  encodeJson,
  isObject,
  jsonBytes,
  jsonEscape,
  own,
  ownString,
  readJson,
} from "./json.ts";

const strictUtf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const oracle = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(strictUtf8.decode(bytes));
  } catch {
    return undefined;
  }
};

const jsonText = fc.json({ stringUnit: "binary" });
/** JSON in UTF-8 with some bytes replaced, so that most of it is nearly valid. */
const nearlyJson = fc
  .tuple(
    jsonText,
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.oneof(fc.nat({ max: 255 }), fc.constantFrom(0x5c, 0x22, 0xc3, 0xe2, 0xf0, 0x80)),
      ),
      { maxLength: 3 },
    ),
  )
  .map(([text, changes]) => {
    const bytes = new TextEncoder().encode(text);
    for (const [at, byte] of changes) if (bytes.length > 0) bytes[at % bytes.length] = byte;
    return bytes;
  });

describe("reading a plaintext", () => {
  it("gives the same as TextDecoder and JSON.parse, or nothing if they refuse", () => {
    fc.assert(
      fc.property(fc.oneof(nearlyJson, fc.uint8Array()), (bytes) => {
        expect(readJson(bytes)).toEqual(oracle(bytes));
      }),
      { numRuns: 3000 },
    );
  });

  // Of each length, the first and the last that are a character, and what is next to them.
  it.each([
    ...["7f", "80", "bf", "c0af", "c1bf", "c280", "dfbf", "c27f", "c2c0", "c2"],
    ...["e09fbf", "e0a080", "ed9fbf", "eda080", "edbfbf", "ee8080", "efbfbf", "e0a0", "e0a07f"],
    ...[
      "f08fbfbf",
      "f0908080",
      "f48fbfbf",
      "f4908080",
      "f5808080",
      "f7bfbfbf",
      "f09080",
      "f9808080",
      "ff",
    ],
  ])("reads %s as TextDecoder does, or not at all", (hex) => {
    for (const [before, after] of [
      ["22", "22"],
      ["22", "6122"],
      ["2261", "22"],
      ["", ""],
      ["22", ""],
    ] as const) {
      const bytes = Uint8Array.from(Buffer.from(before + hex + after, "hex"));
      expect(readJson(bytes)).toEqual(oracle(bytes));
    }
  });

  it("does not repair an invalid escape by escaping the next character", () => {
    const bytes = new TextEncoder().encode('"\\é"');
    expect(oracle(bytes)).toBeUndefined();
    expect(readJson(bytes)).toBeUndefined();
    expect(readJson(new TextEncoder().encode('"\\\\é"'))).toBe("\\é");
  });

  it("turns every code point into ASCII that parses to it", () => {
    for (const code of [0x7f, 0x80, 0x7ff, 0x800, 0xd7ff, 0xe000, 0xffff, 0x10000, 0x10ffff]) {
      const text = asciiJson(new TextEncoder().encode(`"${String.fromCodePoint(code)}"`));
      expect(text).toMatch(/^[\x20-\x7f]*$/);
      expect(JSON.parse(text as string)).toBe(String.fromCodePoint(code));
    }
  });
});

describe("writing JSON", () => {
  it("is ASCII and has the same meaning", () => {
    fc.assert(
      fc.property(fc.jsonValue({ stringUnit: "binary" }), (value) => {
        const text = encodeJson(value) as string;
        expect(text).toMatch(/^[\x20-\x7e]*$/);
        expect(decodeJson(text)).toEqual(JSON.parse(JSON.stringify(value)));
        expect(readJson(jsonBytes(value))).toEqual(JSON.parse(JSON.stringify(value)));
      }),
    );
  });

  it("has no text for what JSON cannot express", () => {
    expect(encodeJson(undefined)).toBeUndefined();
    expect(encodeJson(() => 1)).toBeUndefined();
    expect(() => jsonBytes(undefined)).toThrow("not a JSON value");
  });

  // esphome/issues#1436
  it.each<readonly [string, unknown]>([
    ["", Number.NaN],
    ["/celsius", { celsius: Number.NaN }],
    ["/a/1/b", { a: [null, { b: Number.POSITIVE_INFINITY }], c: Number.NaN }],
    ["/0", [undefined]],
    ["/1", [1, () => 1]],
    ["/0", [Symbol("a")]],
    ["/1", [1].concat(new Array(1), 2)],
    ["/at", { at: new Date(Number.NaN) }],
    ["/readings", { readings: new Map([["a", 1]]) }],
    ["/late", { late: Promise.resolve(1) }],
    ["/why", { why: new Error("dry") }],
    ["/a", { a: { toJSON: () => Number.NaN } }],
    ["", new Set([1])],
    ["", { n: 1n }],
  ])("says where JSON lacks a value: %s", (path, value) => {
    const text = `not a JSON value${path === "" ? "" : ` at ${path}`}`;
    expect(() => encodeJson(value)).toThrow(new TypeError(text));
  });

  it("leaves a null that was meant", () => {
    expect(encodeJson({ a: { toJSON: () => null }, at: new Date(0) })).toBe(
      '{"a":null,"at":"1970-01-01T00:00:00.000Z"}',
    );
  });

  it("tells what an engine cannot hold from what JSON lacks", () => {
    const toJSON = (): never => {
      throw new RangeError("Invalid string length");
    };
    expect(() => encodeJson({ toJSON })).toThrow(
      expect.objectContaining({
        message: "not a JSON value that fits the memory",
        cause: new RangeError("Invalid string length"),
      }),
    );
  });

  it("does not blame the memory for what a getter or toJSON throws", () => {
    const gone = (): never => {
      throw new Error("the sensor is gone");
    };
    const read = Object.defineProperty({}, "at", { get: gone, enumerable: true });
    for (const value of [{ toJSON: gone }, read]) {
      expect(() => encodeJson(value)).toThrow(
        expect.objectContaining({
          message: "not a JSON value",
          cause: new Error("the sensor is gone"),
        }),
      );
    }
  });

  it.each<readonly [string, unknown]>([
    ["null", null],
    ['{"a":null,"b":{},"c":[]}', { a: null, b: {}, c: [], d: undefined }],
    ['{"a":{}}', { a: Object.create(null) }],
    ['{"at":null}', { at: { toJSON: () => null } }],
    ['"null"', "null"],
    ['{"a":{"code":null}}', { a: Object.assign(new Error("dry"), { code: null }) }],
    ['"~\\u007f"', "~\u007f"],
  ])("writes %s", (text, value) => {
    expect(encodeJson(value)).toBe(text);
  });
});

describe("reading parsed values", () => {
  it("sees only own properties", () => {
    const inherited = Object.create({ type: "relay" }) as object;
    expect(own(inherited, "type")).toBeUndefined();
    expect(ownString({ type: 1 }, "type")).toBeUndefined();
    expect(ownString(JSON.parse('{"__proto__":"x"}') as object, "__proto__")).toBe("x");
    expect(own({}, "toString")).toBeUndefined();
  });

  it("takes neither null nor an array for an object", () => {
    expect([isObject({}), isObject([]), isObject(null), isObject("x")]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("escaping a character", () => {
  it("gives the same for a code point, as in Moddable's strings, as for its two surrogates", () => {
    for (const code of [0x7f, 0xe9, 0x4e2d, 0xffff, 0x10000, 0x1f6b0, 0x10ffff]) {
      const text = String.fromCodePoint(code);
      expect(JSON.parse(`"${jsonEscape(code)}"`)).toBe(text);
      expect(encodeJson(text)).toBe(`"${jsonEscape(code)}"`);
    }
  });
});
