import fc from "fast-check";
import { expect, test } from "vitest";
import { changedNumber } from "./encoding/faithful-numbers.ts";
import { decodeText, parseJson } from "./parse-json.ts";

test.each([
  ["", 1, 1],
  ["  ", 1, 3],
  ["{percent: 40}", 1, 2],
  ['{"a": }', 1, 7],
  ['{"a" 1}', 1, 6],
  ['{"a": 1,\n "b": tru}', 2, 7],
  ['{\n  "a": 1,\n}', 3, 1],
  ["[1,", 1, 4],
  ["[1,]", 1, 4],
  ["[1 2]", 1, 4],
  ["[1}", 1, 3],
  ['{"a": 1]', 1, 8],
  ['{"a": 1} x', 1, 10],
  ['{"a": "open', 1, 7],
  ["{'a': 1}", 1, 2],
  ['["a\\x"]', 1, 2],
  ["01", 1, 1],
  ["[1.]", 1, 2],
  ["]", 1, 1],
  ["1, 2", 1, 2],
  ['["a" "b"]', 1, 6],
  ["[1:2]", 1, 3],
  ["{:1}", 1, 2],
  ["[,1]", 1, 2],
  ["[1, 2 3]", 1, 7],
  ["[1] x", 1, 5],
  ["[] x", 1, 4],
  ["{} x", 1, 4],
  ["[}", 1, 2],
  ["{]", 1, 2],
  ['[{"a": 1}] x', 1, 12],
])("%j is invalid at line %i, column %i", (text, line, column) => {
  expect(() => parseJson(text)).toThrow(`invalid JSON (line ${line}, column ${column})`);
});

test("accepts what JSON.parse accepts, and reports the place of an error within the text", () => {
  const broken = fc.tuple(fc.json(), fc.nat(), fc.nat(3), fc.string({ maxLength: 2 }));
  fc.assert(
    fc.property(broken, ([json, at, gone, put]) => {
      const from = at % (json.length + 1);
      const text = json.slice(0, from) + put + json.slice(from + gone);
      let wanted: unknown;
      try {
        wanted = JSON.parse(text);
      } catch {
        const place = /^invalid JSON \(line (\d+), column (\d+)\)$/;
        let message = "";
        try {
          parseJson(text);
        } catch (error) {
          ({ message } = error as Error);
        }
        const [, line, column] = place.exec(message) ?? [];
        const lines = text.split("\n");
        expect(Number(line)).toBeLessThanOrEqual(lines.length);
        expect(Number(column)).toBeLessThanOrEqual((lines[Number(line) - 1] ?? "").length + 1);
        return;
      }
      if (changedNumber(text) === null) expect(parseJson(text)).toEqual(wanted);
    }),
  );
});

test("a long text does not exhaust the stack", () => {
  expect(() => parseJson("[".repeat(1e5))).toThrow("(line 1, column 100001)");
});

// erwindon/SaltGUI#963, jqlang/jq#1652
test.each([
  ['{"id": 3791411052119578828}', 1, 8],
  ['{"a": 1,\n "n": 1e400}', 2, 7],
  ["[-1e-400]", 1, 2],
  ["[9007199254740993]", 1, 2],
  ["[12345678901234567.5]", 1, 2],
])("%s is refused, because reading it would change the number", (text, line, column) => {
  expect(() => parseJson(text)).toThrow(
    `JSON with a number that would change on the way (line ${line}, column ${column}); write it as a text`,
  );
});

test("reads every number that JavaScript writes, and every fraction", () => {
  fc.assert(
    fc.property(fc.double({ noNaN: true, noDefaultInfinity: true }), (value) => {
      expect(parseJson(JSON.stringify([value]))).toEqual([value + 0]);
    }),
  );
  expect(parseJson("[0.1000000000000000055511151231257827, 1.0e2, 100000000000000000000]")).toEqual(
    [0.1, 100, 1e20],
  );
  expect(parseJson('["3791411052119578828", "a 1e400 \\" 1e400"]')).toHaveLength(2);
});

const utf8 = (text: string) => new TextEncoder().encode(text);

test("the text of a file is read without a byte order mark", () => {
  expect(decodeText(utf8("\ufeff{}"))).toBe("{}");
  expect(parseJson("\ufeff[1]")).toEqual([1]);
  for (const text of [
    "",
    "a",
    "\u0000\u0001\u0002\u0003",
    "\u00ff\u00fe",
    "ab\u0000c",
    "a\u0000bc",
    "\u0000\u0000\u0000\u0000",
  ]) {
    expect(decodeText(utf8(text))).toBe(text);
  }
});

test.each([
  [[0xff, 0xfe, 0x7b, 0x22]],
  [[0xfe, 0xff, 0x22, 0x7b]],
  [[0x7b, 0x00, 0x22, 0x00]],
  [[0x00, 0x7b, 0x00, 0x22]],
])("a file in UTF-16 is told as such: %j", (bytes) => {
  expect(() => decodeText(Uint8Array.from(bytes))).toThrow("UTF-16 text; save it as UTF-8");
});

test.each([
  [[0xff, 0x61], 1],
  [[0xfe, 0x61], 1],
  [[0x61, 0x0a, 0x62, 0x0a, 0xfc, 0x0a, 0xfc], 3],
  [[0x61, 0xfe], 1],
  [[0x61, 0xff], 1],
])("a file in another encoding is told with the line: %j", (bytes, line) => {
  expect(() => decodeText(Uint8Array.from(bytes))).toThrow(
    `not UTF-8 text (line ${line}); save it as UTF-8`,
  );
});
