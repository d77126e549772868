/**
 * Espruino's native functions give the same results as protocol's own, although they are more
 * lenient.
 */
import * as protocol from "@blindrelay/protocol/crypto";
import fc from "fast-check";
import { afterAll, beforeEach, describe, expect, it, vi } from "vitest";
import { espruinoGlobals } from "../testing/espruino-natives.ts";
import { brokenText, jsonText } from "../testing/json-texts.ts";
import { parseLeniently, stringifyLeniently } from "../testing/lenient-json.ts";

const ascii = fc.string({ unit: "binary-ascii", maxLength: 40 });
const bytes = fc.uint8Array({ maxLength: 40 });
const nearlyBase64url = fc.string({
  unit: fc.constantFrom(..."AQgw09azAZ-_+/=. \n"),
  maxLength: 12,
});

/** The same value with strings of eight bits a character, which hold UTF-8. */
const asBytes = (value: unknown): unknown => {
  const bytes = (text: string): string => Buffer.from(text, "utf8").toString("latin1");
  if (typeof value === "string") return bytes(value);
  if (Array.isArray(value)) return value.map(asBytes);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [bytes(key), asBytes(item)]),
  );
};

describe("natives", () => {
  let natives: typeof import("./natives.ts");
  beforeEach(async () => {
    const globals = espruinoGlobals();
    for (const [name, value] of Object.entries(globals)) vi.stubGlobal(name, value);
    Object.assign(process, { memory: () => ({ free: 4000 }) });
    // Which strings the engine has is asked when the natives are loaded.
    vi.resetModules();
    vi.spyOn(JSON, "parse").mockImplementation(parseLeniently);
    natives = await import("./natives.ts");
    vi.mocked(JSON.parse).mockRestore();
  });
  afterAll(() => {
    vi.unstubAllGlobals();
    Reflect.deleteProperty(process, "memory");
  });

  it("have the names of protocol's functions", () => {
    for (const name of Object.keys(natives)) expect(protocol).toHaveProperty(name);
  });

  it("map ASCII one to one", () => {
    fc.assert(
      fc.property(ascii, (text) => {
        expect(natives.asciiBytes(text)).toEqual(protocol.asciiBytes(text));
        expect(natives.asciiText(protocol.asciiBytes(text))).toBe(text);
      }),
    );
  });

  it("write and read base64url, and refuse what protocol refuses", () => {
    fc.assert(
      fc.property(bytes, nearlyBase64url, (data, text) => {
        expect(natives.toBase64url(data)).toBe(protocol.toBase64url(data));
        expect(natives.fromBase64url(protocol.toBase64url(data))).toEqual(data);
        expect(natives.fromBase64url(text)).toEqual(protocol.fromBase64url(text));
        expect(natives.isBase64urlText(text)).toBe(protocol.isBase64urlText(text));
      }),
      { numRuns: 1000 },
    );
  });

  it("read JSON as protocol does, on top of a parser that accepts nearly everything", () => {
    // Numbers that stand alone are rare otherwise, and short ones rarer.
    const alone = fc
      .oneof(
        fc.double({ noNaN: true }),
        fc.integer().map((n) => n / 1000),
      )
      .map(String);
    const json = fc.oneof(jsonText, alone);
    const broken = brokenText(json, fc.constantFrom(...",}{][:'\"0x1e-.\\ "));
    const written = JSON.parse;
    vi.spyOn(JSON, "parse").mockImplementation(parseLeniently);
    vi.spyOn(JSON, "stringify").mockImplementation(stringifyLeniently);
    fc.assert(
      fc.property(fc.oneof(json, broken), (text) => {
        let strict: unknown;
        try {
          strict = written(text);
        } catch {
          strict = undefined;
        }
        // A `__proto__` that is left out does not matter: it cannot be an own member on a board.
        fc.pre(!text.includes("__proto__"));
        expect(natives.decodeJson(text)).toEqual(asBytes(strict));
      }),
      { numRuns: 2000 },
    );
  });

  it("writes JSON as JavaScript does, over a writer that rounds numbers and ignores circular references", () => {
    const written = JSON.stringify;
    const number = fc.double({ noDefaultInfinity: true, noNaN: true });
    const values = [fc.string(), number, fc.boolean(), fc.constant(null)];
    const value = fc.anything({ values, maxDepth: 8 });
    vi.spyOn(JSON, "stringify").mockImplementation(stringifyLeniently);
    fc.assert(
      fc.property(value, (given) => {
        const wanted = written(given);
        const text = natives.encodeJson(given);
        // Compared by value: 5e-2 equals 0.05.
        expect(text === undefined ? text : JSON.parse(text)).toEqual(
          wanted === undefined ? wanted : JSON.parse(wanted),
        );
      }),
      { numRuns: 1000, endOnFailure: true },
    );
    expect(natives.encodeJson([{ a: () => 1, b: undefined, c: null }])).toBe('[{"c":null}]');
    for (const [lacking, path] of [
      [{ a: [1, { celsius: Number.NaN }] }, "/a/1/celsius"],
      [{ a: null, b: { c: -1 / 0 } }, "/b/c"],
      [[[], [() => 1]], "/1/0"],
      [[undefined, null], "/0"],
    ] as const) {
      expect(() => natives.encodeJson(lacking)).toThrow(`not a JSON value at ${path}`);
    }
    expect(natives.encodeJson(Number.NaN)).toBeUndefined();
    expect(natives.encodeJson(() => 1)).toBeUndefined();
    expect(natives.encodeJson({ at: new Date(0), n: 0.5 })).toBe(
      '{"at":"1970-01-01T00:00:00.000Z","n":0.5}',
    );
    const circle: object[] = [];
    circle.push(circle);
    expect(natives.encodeJson(circle)).toBeUndefined();
  });

  it("keep every long exponent from the native parser, which multiplies by ten that often", () => {
    const parse = vi.spyOn(JSON, "parse");
    const long = ["9e99999", "1E+999999999", "1.e-9_9_9_9", ".5e99999", "9_e9999"];
    for (const before of ["", "[", "[ ", "[\n", "[-", "[- ", "[/**/", "[(", '{"a":\t']) {
      for (const number of long) {
        // Little memory is no reason.
        for (const free of [4000, 500]) {
          Object.assign(process, { memory: () => ({ free }) });
          const close = before.startsWith("{") ? "}" : before === "" ? "" : "]";
          natives.decodeJson(`${before}${number}${close}`);
        }
      }
    }
    expect(natives.decodeJson("[\r\n\t1e999999999]")).toEqual([Infinity]);
    Object.assign(process, { memory: () => ({ free: 100 }) });
    expect(natives.decodeJson("1e999999999")).toBeUndefined();
    expect(parse.mock.calls.filter(([text]) => /[0-9]/.test(text))).toEqual([]);
    parse.mockRestore();
  });

  it("let no text set a prototype, and use the last of two members", () => {
    vi.spyOn(JSON, "parse").mockImplementation(parseLeniently);
    const value = natives.decodeJson('{"__proto__": {"type": "relay"}, "a": 1, "a": 2}');
    expect(value).toEqual({ a: 2 });
    expect(protocol.own(value as object, "type")).toBeUndefined();
  });

  it("compute CRC-32", () => {
    fc.assert(
      fc.property(bytes, (data) => {
        expect(natives.crc32(data)).toBe(protocol.crc32(data));
      }),
    );
  });
});
