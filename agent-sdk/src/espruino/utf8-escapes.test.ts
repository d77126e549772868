/** Text of any character, as an engine whose strings have 8 bits reads and writes it. */
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { espruinoGlobals } from "../testing/espruino-natives.ts";
import { parseLeniently, stringifyLeniently } from "../testing/lenient-json.ts";
import { escapeBytes, unescapeBytes } from "./utf8-escapes.ts";

/** A program's string for a text: its UTF-8, a byte to a character. */
const utf8 = (text: string): string => Buffer.from(text, "utf8").toString("latin1");

const anyText = fc.string({ unit: "binary" });
const anyBytes = fc
  .uint8Array({ maxLength: 20 })
  .map((bytes) => Buffer.from(bytes).toString("latin1"));

/** JSON text in one of the forms that peers write. */
const ascii = (value: unknown): string =>
  JSON.stringify(value).replace(
    /[^\0-\x7e]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );

/** The form in which bytes of UTF-8 that are not escaped reach this engine. */
const raw = (value: unknown): string => utf8(JSON.stringify(value));

const isUtf8 = (text: string): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(Buffer.from(text, "latin1"));
    return true;
  } catch {
    return false;
  }
};

it("turns every character into its UTF-8, escaped or not, and leaves escaped backslashes", () => {
  fc.assert(
    fc.property(anyText, (text) => {
      for (const written of [ascii(text), raw(text)]) {
        const escaped = escapeBytes(written);
        expect(escaped).toMatch(/^[\0-\x7e]*$/);
        expect(JSON.parse(escaped)).toBe(utf8(text));
      }
    }),
    { numRuns: 2000 },
  );
});

it("turns UTF-8 into its characters, and leaves a string that is none byte by byte", () => {
  fc.assert(
    fc.property(fc.array(fc.oneof(anyText.map(utf8), anyBytes)), (strings) => {
      const text = unescapeBytes(stringifyLeniently(strings));
      const wanted = strings.map((string) =>
        isUtf8(string) ? Buffer.from(string, "latin1").toString("utf8") : string,
      );
      expect(JSON.parse(text)).toEqual(wanted);
    }),
    { numRuns: 2000 },
  );
});

it.each([
  ["half a pair", '"\\ud83c"', '"\\u00EF\\u00BF\\u00BD"'],
  ["the second half alone", '"\\udf31x"', '"\\u00EF\\u00BF\\u00BDx"'],
  [
    "two first halves",
    '"\\ud83c\\ud83c\\udf31"',
    '"\\u00EF\\u00BF\\u00BD\\u00F0\\u009F\\u008C\\u00B1"',
  ],
  ["an escaped backslash before u", '"\\\\u20ac"', '"\\\\u20ac"'],
  ["what is no escape", '"\\u8fG0 \\u12 \\u"', '"\\u8fG0 \\u12 \\u"'],
  ["ASCII as escapes", '"\\u0041\\u007f"', '"\\u0041\\u007f"'],
])("reads %s", (_what, given, escaped) => {
  expect(escapeBytes(given)).toBe(escaped);
});

it.each([
  ["an overlong form", "\\u00C0\\u0080"],
  ["a surrogate in UTF-8", "\\u00ED\\u00A0\\u0080"],
  ["more than Unicode has", "\\u00F4\\u0090\\u0080\\u0080"],
  ["a sequence that is cut off", "\\u00E2\\u0082"],
  ["a continuation alone", "\\u00A9"],
  ["a sequence behind a valid one", "\\u00C3\\u00A9\\u00FF"],
])("leaves %s as it is", (_what, text) => {
  expect(unescapeBytes(`["${text}"]`)).toBe(`["${text}"]`);
});

describe("natives of an engine with eight bits a character", () => {
  let natives: typeof import("./natives.ts");
  const node = { parse: JSON.parse, stringify: JSON.stringify };

  beforeAll(async () => {
    for (const [name, value] of Object.entries(espruinoGlobals())) vi.stubGlobal(name, value);
    Object.assign(process, { memory: () => ({ free: 4000 }) });
    vi.resetModules();
    JSON.parse = parseLeniently as typeof JSON.parse;
    natives = await import("./natives.ts");
    JSON.parse = node.parse;
  });
  afterAll(() => {
    vi.unstubAllGlobals();
    Reflect.deleteProperty(process, "memory");
  });

  /** What the natives make of it on such an engine. */
  const onEngine = <T>(work: () => T): T => {
    JSON.parse = parseLeniently as typeof JSON.parse;
    JSON.stringify = stringifyLeniently as typeof JSON.stringify;
    try {
      return work();
    } finally {
      Object.assign(JSON, node);
    }
  };

  it("reads and writes text of any character, in members and their names, and with numbers", () => {
    const value = fc.record({
      text: anyText,
      list: fc.array(fc.oneof(anyText, fc.integer(), fc.constant(0.5)), { maxLength: 3 }),
      members: fc.dictionary(fc.string({ unit: "binary", minLength: 1 }), anyText, { maxKeys: 3 }),
    });
    fc.assert(
      fc.property(value, (given) => {
        fc.pre(!("constructor" in given.members && Object.hasOwn(given.members, "constructor")));
        fc.pre(!Object.hasOwn(given.members, "__proto__"));
        for (const text of [ascii(given), raw(given)]) {
          const read = onEngine(() => natives.decodeJson(text)) as { text: string };
          expect(read.text).toBe(utf8(given.text));
          const back = onEngine(() => natives.encodeJson(read)) as string;
          expect(back).toMatch(/^[\0-\x7f]*$/);
          expect(JSON.parse(back)).toEqual(given);
        }
      }),
      { numRuns: 1000 },
    );
  });

  it("keeps names apart whose low bytes are alike", () => {
    const read = onEngine(() => natives.decodeJson('{"a":1,"\\u0161":2,"price":"5 \\u20ac"}'));
    expect(read).toEqual({ a: 1, [utf8("š")]: 2, price: utf8("5 €") });
  });
});
