import { utf8Bytes } from "@blindrelay/protocol/crypto";
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
