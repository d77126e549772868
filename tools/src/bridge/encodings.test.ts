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
