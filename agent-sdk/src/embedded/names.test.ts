import { utf8Bytes } from "@blindrelay/protocol/crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { KnownNames } from "./names.ts";

const NAME = 41; // of one character

const admits = (names: KnownNames, text: string): boolean => names.admit(utf8Bytes(text));

it("admits new names until they do not fit, and known ones for ever", () => {
  const names = new KnownNames(2 * NAME);
  expect(admits(names, '{"a":{"b":1,"a":2}}')).toBe(true);
  expect(admits(names, '{"c":1}')).toBe(false);
  expect(admits(names, '{"b":[{"a":1}]}')).toBe(true);
});

it("takes no value for a name, and finds a name behind any string", () => {
  const names = new KnownNames(NAME);
  expect(admits(names, '{"a":"b","a" \n:["c","d\\\\"]}')).toBe(true);
  expect(admits(names, '{"a":"\\\\\\"b\\":","c":1}')).toBe(false);
});

it("ends with a text that does", () => {
  const names = new KnownNames(NAME);
  for (const text of ["", '"', '"a', '"a\\"', '{"a"', '{"a":"', '"\\'])
    expect(admits(names, text)).toBe(true);
});

it("counts what a parser has read as a name before it finds a mistake", () => {
  const names = new KnownNames(NAME);
  for (const text of ['{"bc,"d":1}', '{"a":1,"bc"', '[{"bc"}]', '{"a":["x"],"bc" 1}'])
    expect([text, admits(names, text)]).toEqual([text, false]);
  for (const text of ['["bc","d"]', '{"a":["bc",{"a":"bc"},"d"]}', '{"a":1}"bc"'])
    expect([text, admits(names, text)]).toEqual([text, true]);
});

it("counts the names of any value, and nothing else", () => {
  const namesOf = (value: unknown): string[] =>
    typeof value !== "object" || value === null
      ? []
      : Array.isArray(value)
        ? value.flatMap(namesOf)
        : Object.entries(value).flatMap(([name, inner]) => [name, ...namesOf(inner)]);
  fc.assert(
    fc.property(fc.json({ stringUnit: "grapheme-ascii" }), (text) => {
      const written = new Set(namesOf(JSON.parse(text)).map((name) => JSON.stringify(name)));
      const room = [...written].reduce((sum, name) => sum + name.length - 2 + 40, 0);
      expect(admits(new KnownNames(room), text)).toBe(true);
      if (room > 0) expect(admits(new KnownNames(room - 1), text)).toBe(false);
    }),
  );
});
