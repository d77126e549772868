/** The subset check (agent-sdk/src/testing/espruino-subset.ts): the built file without what Espruino lacks. */
import { describe, expect, it } from "vitest";
import { SubsetBoard } from "../../../agent-sdk/src/testing/espruino-subset.ts";
import { type Board, conversationTests } from "./conversation.ts";

const makeBoard = (): Board => {
  const files = new Map<string, string>();
  let life: SubsetBoard | null = null;
  const powerOff = async (): Promise<void> => {
    life?.powerOff();
    life = null;
  };
  return {
    async install(name, content) {
      files.set(name, content);
    },
    async provision() {
      new SubsetBoard(files).evaluate('require("blindrelay").provision()');
    },
    async powerOn() {
      const board = new SubsetBoard(files);
      life = board;
      board.evaluate('require("blindrelay").start(require("program").program)');
      while (board.evaluate('require("blindrelay").status().state') !== "online")
        await new Promise((resolve) => setTimeout(resolve, 2));
    },
    powerOff,
    end: powerOff,
  };
};

describe("subset check", () => {
  conversationTests({ makeBoard, runtime: /^espruino 2v29 SUBSET$/, small: false });

  it.each([
    ["Map", "typeof Map", "undefined"],
    ["Math.imul", "typeof Math.imul", "undefined"],
    ["text after a JSON value", 'JSON.parse("{}x") !== undefined', true],
    ["__proto__ in JSON", 'JSON.parse("{\\"__proto__\\": {\\"a\\": 1}}").a', 1],
    ["the first of two members", 'JSON.parse("{\\"a\\": 1, \\"a\\": 2}").a', 1],
    ["single quotes, hexadecimals, a trailing comma", "JSON.parse(\"{'a': 0x10,}\").a", 16],
    ["broken base64", 'atob("-").length', 0],
    [
      "jobs of promises at the end of a turn",
      "var late = 0; Promise.resolve().then(() => late++); late",
      0,
    ],
    ["8-bit characters", "String.fromCharCode(256 + 65)", "A"],
    ["a slice that is an Array", "Array.isArray(new Uint8Array(2).slice(0))", true],
    ["escapes from 0x7f on", 'JSON.stringify("\\u007f\\u4e2d")', '"\\u007f\\u4e2d"'],
  ])("imitates Espruino with %s", (_what, code, value) => {
    expect(new SubsetBoard(new Map()).evaluate(code)).toBe(value);
  });
});
