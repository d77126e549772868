/** What the subset check imitates; the conversations with it are in test/src/runtime-parity. */
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { describe, expect, it } from "vitest";

describe("subset check", () => {
  it.each([
    ["Map", "typeof Map", "undefined"],
    ["Math.imul", "typeof Math.imul", "undefined"],
    ["text after a JSON value", 'JSON.parse("{}x") !== undefined', true],
    ["__proto__ in JSON", 'JSON.parse("{\\"__proto__\\": {\\"a\\": 1}}").a', 1],
    ["the first of duplicate members", 'JSON.parse("{\\"a\\": 1, \\"a\\": 2}").a', 1],
    ["single quotes, hexadecimals, a trailing comma", "JSON.parse(\"{'a': 0x10,}\").a", 16],
    ["few digits of a number", "JSON.stringify([1 / 3])", "[0.333333333333]"],
    ["numbers rounded at every digit", 'JSON.parse("0.30000000000000004") === 0.1 + 0.2', false],
    ["undefined in JSON", "JSON.stringify([() => 1])", "[undefined]"],
    ["broken base64", 'atob("-").length', 0],
    [
      "jobs of promises at the end of a turn",
      "var late = 0; Promise.resolve().then(() => late++); late",
      0,
    ],
    ["a string split by a longer one", '"ab".split("abcd").length', 0],
    ["8-bit characters", "String.fromCharCode(256 + 65)", "A"],
    ["a slice that is an Array", "Array.isArray(new Uint8Array(2).slice(0))", true],
    ["escapes from 0x7f on", 'JSON.stringify("\\u007f\\xe9")', '"\\u007F\\u00E9"'],
    ["strings that keep the low byte", "JSON.parse('\"\\\\u20ac\"')", "\xac"],
  ])("imitates Espruino with %s", (_what, code, value) => {
    expect(new SubsetBoard(new Map()).evaluate(code)).toBe(value);
  });
});
