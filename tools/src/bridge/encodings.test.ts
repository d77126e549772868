/**
 * What reaches a device is what was checked: no character becomes another, such as a line end, by
 * the encoding of a mapping.
 *
 * ClassicUO/ClassicUO#1088: U+010D, cut to its low byte, ended a line.
 */
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { DEFAULT_SETTINGS } from "@blindrelay/protocol/serial";
import { expect, it, onTestFinished } from "vitest";
import { serialOpener } from "../serial/local.ts";
import { Cable, HAS_SOCAT } from "../serial/testing/pty.ts";
import { LineEngine } from "./line-engine.ts";
import { encodeLine, type LineCommand, readMapping } from "./mapping.ts";

const isEnd = (byte: number): boolean => byte === 10 || byte === 13;

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
    const steering = (byte: number): boolean => byte < 0x20 || (byte >= 0x7f && byte < 0xa0);
    if (encoding === "latin1" ? bytes.some(steering) : bytes.some((byte) => byte < 0x20)) {
      expect.unreachable(`U+${unit.toString(16)} steers the device`);
    }
  }
  // All but 65 control characters; in UTF-8 all but halves of pairs, too.
  expect(written).toBe(encoding === "latin1" ? 256 - 65 : 65_536 - 65 - 2048);
});

it.skipIf(!HAS_SOCAT).each(["utf8", "latin1"] as const)(
  "each character up to U+FFFF reaches a device on a terminal in %s as it is, or not at all",
  async (encoding) => {
    const cable = new Cable();
    onTestFinished(() => cable.end());
    const device = await cable.plug();
    // Lines are cut as bytes: no character may end one.
    let held = Buffer.alloc(0);
    const lines: string[] = [];
    cable.received = (bytes) => {
      held = Buffer.concat([held, bytes]);
      for (let end = held.findIndex(isEnd); end >= 0; end = held.findIndex(isEnd)) {
        lines.push(held.subarray(0, end).toString(encoding));
        held = held.subarray(end + 1);
        device.write("ok\r");
      }
    };
    const mapping = readMapping({
      encoding,
      commands: { label: { send: "LABEL {text}", params: { text: {} } } },
    });
    const [command] = mapping.commands as [LineCommand];
    const port = await serialOpener(cable.path)(DEFAULT_SETTINGS, {
      data: (bytes) => engine.receive(bytes),
      closed: () => undefined,
    });
    const engine: LineEngine = new LineEngine(mapping, {
      timer: systemTimer(),
      write: (bytes) => port.write(bytes),
      event: () => undefined,
    });
    const sent: string[] = [];
    for (let first = 0; first <= 0xffff; first += 128) {
      const characters = Array.from({ length: 128 }, (_, i) => String.fromCharCode(first + i));
      const good = characters.filter((one) => {
        const call = (): unknown => command.line({ text: `a${one}b` }, "0");
        try {
          return call() !== "";
        } catch {
          return false;
        }
      });
      if (good.length === 0) continue;
      await engine.call(command, { text: good.join("") });
      sent.push(`LABEL ${good.join("")}`);
    }
    expect(lines).toEqual(sent);
    await port.close();
  },
);

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

it.each([
  [";", "on;ERASE", true],
  ["##", "on#", true],
  ["\r\n", "on", false],
  [";", "on", false],
])("no parameter ends the line sooner than its end %j does: %j", (end, text, isRefused) => {
  const mapping = { end, commands: { label: { send: "LABEL {text}", params: { text: {} } } } };
  const [command] = readMapping(mapping).commands as [LineCommand];
  const write = (): string => command.line({ text }, "0");
  if (isRefused) expect(write).toThrow(`the line must not hold "${end}", which ends it`);
  else expect(write()).toBe(`LABEL ${text}`);
});

it("a command with the end of a line in it is refused when the mapping is read", () => {
  expect(() => readMapping({ end: ";", commands: { erase: { send: "ON;ERASE" } } })).toThrow(
    "/commands/erase: send must be one line without its end",
  );
});

it("a placeholder is no end of a line, whatever stands in it", () => {
  const mapping = { end: "#", commands: { get: { send: "GET {#}" } } };
  const [command] = readMapping(mapping).commands as [LineCommand];
  expect(command.line({}, "7")).toBe("GET 7");
});

it("a number is within its bounds as it is sent, with fewer decimals", () => {
  const x = { type: "number", minimum: 0.4, maximum: 99.9, decimals: 0 };
  const mapping = readMapping({ commands: { move: { send: "X{x}", params: { x } } } });
  const [command] = mapping.commands as [LineCommand];
  expect(command.line({ x: 99.4 }, "0")).toBe("X99");
  for (const beyond of [99.6, 0.4]) {
    expect(() => command.line({ x: beyond }, "0")).toThrow('parameter "x" must be 0.4 to 99.9');
  }
});

// prusa3d/PrusaSlicer#382, FullControlXYZ/fullcontrol#95
it.each([
  [1e-7, undefined, "0.0000001"],
  [-1.5e-7, undefined, "-0.00000015"],
  [5e-324, undefined, `0.${"0".repeat(323)}5`],
  [1.25e21, undefined, "1250000000000000000000"],
  [-1e300, undefined, `-1${"0".repeat(300)}`],
  [0.1, undefined, "0.1"],
  [-0, undefined, "0"],
  [0.1 + 0.2, 3, "0.300"],
  [1e-7, 3, "0.000"],
  [1e22, 2, "10000000000000000000000"],
])("%d with decimals %j reaches the device as %s, never with an exponent", (x, decimals, text) => {
  const param = decimals === undefined ? {} : { decimals };
  const mapping = readMapping({
    commands: { move: { send: "G1 X{x}", params: { x: { type: "number", ...param } } } },
  });
  expect((mapping.commands[0] as LineCommand).line({ x }, "0")).toBe(`G1 X${text}`);
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
