/**
 * What reaches a device is what was checked: no character becomes another, such as a line end, by
 * the encoding of a mapping.
 *
 * ClassicUO/ClassicUO#1088: U+010D, cut to its low byte, ended a line.
 */
import { expect, it } from "vitest";
import { encodeLine, type LineCommand, readMapping } from "./mapping.ts";

const commandIn = (encoding: string): LineCommand =>
  readMapping({
    encoding,
    commands: { label: { send: "LABEL {text}", params: { text: {} } } },
  }).commands[0] as LineCommand;

it.each(["utf8", "latin1"] as const)("no character changes in %s, up to U+FFFF", (encoding) => {
  const command = commandIn(encoding);
  let written = 0;
  for (let unit = 0; unit <= 0xffff; unit++) {
    const text = `a${String.fromCharCode(unit)}b`;
    let line: string;
    try {
      line = command.line({ text }, "0");
    } catch {
      continue;
    }
    written++;
    const bytes = encodeLine(line, encoding);
    if (bytes.toString(encoding) !== `LABEL ${text}`) expect.unreachable(`U+${unit.toString(16)}`);
    if (bytes.some((byte) => byte < 0x20 || byte === 0x7f)) {
      expect.unreachable(`U+${unit.toString(16)} steers the device`);
    }
  }
  // All but 33 control characters; in UTF-8 all but halves of pairs, too.
  expect(written).toBe(encoding === "latin1" ? 256 - 33 : 65_536 - 33 - 2048);
});

it("names the character and the encoding", () => {
  const send = (): unknown => commandIn("latin1").line({ text: "hallĊERASE" }, "0");
  expect(send).toThrow('parameter "text": "Ċ" cannot be written in latin1');
});

it.each([
  [{ encoding: "latin1", commands: { label: { send: "LABEL Ċ" } } }, "/commands/label/send"],
  [{ encoding: "latin1", end: "Ċ", commands: {} }, "/end"],
])("a mapping that cannot be written is refused when it is read: %j", (mapping, place) => {
  expect(() => readMapping(mapping)).toThrow(`${place}: "Ċ" cannot be written in latin1`);
});

// prusa3d/PrusaSlicer#382: a device read the "e" of 1e-06 as the name of an axis, and moved.
it.each<readonly [number, number | undefined, string]>([
  [1e-7, undefined, "0.0000001"],
  [-1.25e-9, undefined, "-0.00000000125"],
  [5e-324, undefined, `0.${"0".repeat(323)}5`],
  [1e21, undefined, "1000000000000000000000"],
  [1.5e22, undefined, "15000000000000000000000"],
  [0.1, undefined, "0.1"],
  [-0, undefined, "0"],
  [5e-17, 3, "0.000"],
  [-0.0001, 2, "0.00"],
  [2.5, 3, "2.500"],
  [1e21, 2, "1000000000000000000000"],
])("the number %d with %s decimals is written as %s", (x, decimals, text) => {
  const param = { type: "number", ...(decimals === undefined ? {} : { decimals }) };
  const commands = { move: { send: "G1 X{x}", params: { x: param } } };
  expect(readMapping({ commands }).commands[0]?.line({ x }, "0")).toBe(`G1 X${text}`);
});

it("numbers that are none for a device are refused", () => {
  const commands = { move: { send: "G1 X{x}", params: { x: { type: "number" } } } };
  for (const x of [Number.NaN, Number.POSITIVE_INFINITY]) {
    expect(() => readMapping({ commands }).commands[0]?.line({ x }, "0")).toThrow(
      "must be a number",
    );
  }
});

// erwindon/SaltGUI#963
it.each(["12345678901234567890", "1e400", "-9007199254740993"])(
  "a number of a device that would be another one is taken for damaged: %s",
  (number) => {
    const answer = { regex: "^N=(?<n>\\S+)$", numbers: ["n"] };
    const commands = { a: { send: "A", answer }, b: { send: "B", answer: { json: {} } } };
    const [regex, json] = readMapping({ commands }).commands;
    expect(regex?.answer(`N=${number}`, "0")).toBeNull();
    expect(json?.answer(`{"n":${number}}`, "0")).toBeNull();
    expect(regex?.answer("N=9007199254740991", "0")).toEqual({ n: 2 ** 53 - 1 });
  },
);
