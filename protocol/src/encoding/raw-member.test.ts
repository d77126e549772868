import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { rawMember } from "./raw-member.ts";

describe("a member's own text", () => {
  it.each([
    ['{"payload":{"seq":1.0}}', '{"seq":1.0}'],
    [' { "a" : [ { } ] , "payload" : { "x" : "}" } } ', '{ "x" : "}" }'],
    ['{"payload":"payload","payload":2}', "2"],
    ['{"a":{"payload":1}}', null],
    ['{"a":"payload"}', null],
    ['{"a":["payload",{"payload":1}],"payload":true}', "true"],
    ['{"a":"\\"payload\\":1","b":"\\\\","payload":null}', "null"],
    ["{}", null],
    ['{"payload":"', null],
  ])("in %s", (text, raw) => {
    expect(rawMember(text, "payload")).toBe(raw);
  });

  it.each([
    ['{"seq":1}', "1"],
    ['{"seq" : 1.50 }', "1.50"],
    ['{"seq":-0}', "-0"],
    ['{"a":"seq","seq":2}', "2"],
    ['[{"seq":1}]', null],
    ['{"seq":1,"seq":"1"}', '"1"'],
    ['{"s\\u0065q":1e0}', "1e0"],
    ['{"seq":[1,2],"seq":1.0,"x":{"seq":1}}', "1.0"],
    ["", null],
  ])("keeps the literal of a number, in %s", (text, raw) => {
    expect(rawMember(text, "seq")).toBe(raw);
  });

  it("is what JSON.parse would read, for any object and spacing", () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.string(), fc.jsonValue()),
        fc.jsonValue(),
        fc.constantFrom(0, 1, "\t"),
        (others, payload, space) => {
          const text = JSON.stringify({ ...others, payload, "": others }, null, space);
          expect(JSON.parse(rawMember(text, "payload") as string)).toEqual(
            JSON.parse(JSON.stringify(payload)),
          );
        },
      ),
    );
  });
});

describe("the cost of finding it", () => {
  /**
   * A text that counts the characters read, so that linear cost is a number and not a stopwatch's.
   */
  class CountingText {
    readonly text: string;
    looks = 0;
    constructor(text: string) {
      this.text = text;
    }
    get length() {
      return this.text.length;
    }
    charAt(at: number) {
      this.looks++;
      return this.text.charAt(at);
    }
    charCodeAt(at: number) {
      this.looks++;
      return this.text.charCodeAt(at);
    }
    indexOf(what: string, from: number) {
      const found = this.text.indexOf(what, from);
      this.looks += (found < 0 ? this.text.length : found) - from + 1;
      return found;
    }
    substring(from: number, to: number) {
      this.looks += to - from;
      return this.text.substring(from, to);
    }
  }

  const size = 20000;
  it.each([
    ["one long string of backslashes", `{"x":"${"\\\\".repeat(size)}","seq":1}`],
    ["escaped quotes", `{"x":"${'\\"'.repeat(size)}","seq":1}`],
    ["escaped backslashes and quotes", `{"x":"${'\\\\\\"'.repeat(size)}","seq":1}`],
    ["a key of backslashes", `{"${"\\\\".repeat(size)}":1,"seq":1}`],
    ["many keys", `{${'"a":1,'.repeat(size)}"seq":1}`],
    ["many escaped keys", `{${'"\\\\":1,'.repeat(size)}"seq":1}`],
    ["many seqs", `{${'"seq":1,'.repeat(size)}"seq":1}`],
    ["deep arrays", `{"x":${"[".repeat(size)}${"]".repeat(size)},"seq":1}`],
    ["blanks", `{"seq"${" ".repeat(size)}:${" ".repeat(size)}1}`],
    ["a long number", `{"seq":${"1".repeat(size)},"seq":1}`],
  ])("is linear among %s", (_what, text) => {
    expect(JSON.parse(text)).toHaveProperty("seq", 1);
    const counting = new CountingText(text);
    expect(rawMember(counting as unknown as string, "seq")).toBe("1");
    expect(counting.looks / text.length).toBeLessThan(6);
  });
});
