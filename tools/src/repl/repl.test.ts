/**
 * The console against a board over a real pty: a double, and a real Espruino if ESPRUINO_BIN names
 * one.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  BoardError,
  EspruinoRepl,
  type Port,
  REPL_LIMITS,
  type ReplLimits,
  readBoard,
} from "@blindrelay/agent-sdk/board";
import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import { afterEach, describe, expect, it } from "vitest";
import { serve } from "../serial/testing/server.ts";
import { openFailure, openPort } from "./port.ts";
import { EspruinoDouble } from "./testing/double.ts";
import { lineTo } from "./testing/line.ts";
import type { DoubleOptions } from "./testing/options.ts";
import { BoardCable, RealEspruino } from "./testing/pty.ts";

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

const folder = (): string => {
  const path = mkdtempSync(join(tmpdir(), "blindrelay-console-"));
  ends.push(() => rmSync(path, { recursive: true, force: true }));
  return path;
};

const plugIn = async (options: Partial<DoubleOptions> = {}) => {
  const double = new EspruinoDouble(options);
  const cable = new BoardCable(double, join(folder(), "tty"));
  ends.push(
    () => double.end(),
    () => cable.end(),
  );
  await cable.plug();
  return { double, cable };
};

const FAST = 921_600;

const open = async (name: string, limits: ReplLimits = REPL_LIMITS) => {
  const board = new EspruinoRepl(await openPort(name, { baud: FAST }), limits);
  ends.push(() => board.close());
  return board;
};

/** A port to a board that says nothing. */
const silentPort = (): Port => ({
  name: "tty",
  events: { received: () => undefined, closed: () => undefined },
  write: async () => undefined,
  close: async () => undefined,
});

/** A test shortens `limits` only for what has to reach them: cable and double may be slow. */
const onPty = async (options: Partial<DoubleOptions> = {}) => {
  const { double, cable } = await plugIn(options);
  const limits = { ...REPL_LIMITS };
  return { double, cable, limits, board: await open(cable.path, limits) };
};

describe("the console", () => {
  it("answers over a pty and over TCP", async () => {
    const { double, board } = await onPty();
    await board.attach(true);
    expect(await board.evaluate("{a:[1,2],b:'\xfc'}")).toEqual({ a: [1, 2], b: "\xfc" });
    const { board: name } = await readBoard(board);
    expect(name).toBe("DOUBLE");
    await board.close();
    const { server, port } = await serve((socket) => double.connect(socket));
    ends.push(() => server.close());
    const overTcp = await open(`tcp://127.0.0.1:${port}`);
    await overTcp.attach(true);
    expect(await overTcp.evaluate("6*7")).toBe(42);
  });

  it("reports errors thrown by the board, and lines that it could not read", async () => {
    const { board } = await onPty();
    await board.attach(true);
    await expect(board.evaluate("nope.x")).rejects.toThrow(BoardError);
    await expect(board.evaluate("1 2")).rejects.toThrow(/Uncaught SyntaxError/);
    expect(await board.evaluate("1")).toBe(1);
  });

  it("ends what is asked when it is closed, and takes nothing more", async () => {
    const board = new EspruinoRepl(silentPort());
    const asked = board.evaluate("1", 60_000).catch((error) => error);
    await board.close();
    expect(await asked).toMatchObject({ reason: "gone" });
    await expect(board.evaluate("1")).rejects.toMatchObject({ reason: "gone" });
  });

  it("reads in linear time a line of nothing but beginnings of answers", () => {
    const grown = growth(1_000, (n) => {
      const line = Buffer.from(`${"<br:0:ok>".repeat(n / 10)}\r.\n`);
      const port = silentPort();
      new EspruinoRepl(port);
      return () => port.events.received(line);
    });
    expect(grown).toBeLessThan(LINEAR);
  });

  it("does not disturb a running program unless it may interrupt it", async () => {
    const { double, board, limits } = await onPty();
    double.hang();
    limits.attachMs = 2_500;
    await expect(board.attach(false)).rejects.toThrow(/nothing answers/);
    limits.attachMs = REPL_LIMITS.attachMs;
    await board.attach(true);
  });

  /** A port on which the first `times` lines arrive damaged. */
  const damaging = (times: number): Port => {
    let left = times;
    const port: Port = {
      name: "tty",
      events: { received: () => undefined, closed: () => undefined },
      async write(bytes) {
        const id = /br:(\d+):ok/.exec(Buffer.from(bytes).toString("latin1"))?.[1];
        if (id === undefined) return;
        const answer = `<br:${id}:ok>1\r\n>`;
        const complaint = '>Uncaught ReferenceError: "gth" is not defined\r\n at REPL:1:1\r\n>';
        const said = left-- > 0 ? complaint : answer;
        setImmediate(() => port.events.received(Buffer.from(said)));
      },
      close: async () => undefined,
    };
    return port;
  };

  it("recognizes a board although lines arrive there damaged", async () => {
    const limits = { ...REPL_LIMITS, settleMs: 1 };
    await new EspruinoRepl(damaging(2), limits).attach(false);
    expect(await new EspruinoRepl(damaging(2), limits).evaluate("1")).toBe(1);
    limits.attachMs = 1_500;
    const hopeless = new EspruinoRepl(damaging(99), limits).attach(false);
    await expect(hopeless).rejects.toThrow("an Espruino answers, but what is typed");
  });

  it("clears a line that was left half typed", async () => {
    const { board } = await onPty();
    await board.write("foo({");
    await board.attach(true);
    expect(await board.evaluate("1+1")).toBe(2);
  });

  it("damages no line with the letter before a Ctrl-C that overtook it", async () => {
    const { double, board } = await onPty();
    await board.attach(true);
    const lines: string[] = [];
    board.onLine = (line) => lines.push(line);
    double.stuck = true;
    await board.interrupt();
    double.stuck = false;
    expect(await board.evaluate("1+1")).toBe(2);
    double.stuck = true;
    await board.interrupt();
    double.stuck = false;
    await board.type("var y = 3");
    expect(await board.evaluate("y")).toBe(3);
    expect(lines).toEqual([]);
  });

  it("obeys XOFF: a slow board with a small buffer loses nothing", async () => {
    const double = new EspruinoDouble({ bufferBytes: 256, xoffBytes: 128, bytesPerTick: 64 });
    ends.push(() => double.end());
    const board = new EspruinoRepl(lineTo(double));
    await board.attach(true);
    const text = "0123456789".repeat(400);
    expect(await board.evaluate(`"${text}"`)).toBe(text);
    expect(double.xoffs).toBeGreaterThan(1);
    expect(double.lost).toBe(0);
  });

  it("gives up on an XOFF that never ends", async () => {
    const { double, board, limits } = await onPty({ xoffBytes: 64 });
    await board.attach(true);
    double.stuck = true;
    limits.xoffMs = 300;
    await expect(board.evaluate(`"${"x".repeat(4000)}"`)).rejects.toMatchObject({
      exitCode: 7,
      message: expect.stringContaining("XOFF"),
    });
  });

  it("gives up on an XOFF that arrives after everything was written", async () => {
    const { double, board, limits } = await onPty();
    await board.attach(true);
    double.stuck = true;
    limits.xoffMs = 300;
    const asked = board.evaluate("1");
    double.say("\x13");
    await expect(asked).rejects.toMatchObject({
      exitCode: 7,
      message: expect.stringContaining("XOFF"),
    });
  });

  it("fails at once when the port disconnects", async () => {
    const { double, cable, board } = await onPty();
    await board.attach(true);
    double.stuck = true;
    const fails = expect(board.evaluate("1")).rejects.toMatchObject({
      exitCode: 7,
      message: expect.stringContaining("disconnected"),
    });
    await cable.pull();
    await fails;
  });

  it("passes on what programs print, without the prompt", async () => {
    const { double, board } = await onPty();
    await board.attach(true);
    const lines: string[] = [];
    board.onLine = (line) => lines.push(line);
    double.print("temperature 21.5");
    double.print(Buffer.from("Wärme: \x1b[31m80 °C\x1b[0m, 3 €").toString("latin1"));
    double.print("80 \xb0C");
    await board.evaluate("1");
    expect(lines).toEqual(["temperature 21.5", "Wärme: 80 °C, 3 €", "80 °C"]);
  });

  it.each([
    ["MicroPython v1.22 on 2024-01-05; ESP32 module\r\n>>> ", /MicroPython.*espruino\.com/],
    ["rst:0x1 (POWERON_RESET),boot:0x13\r\n", /boot loader/],
    ["login: ", /it says "login:"/],
    ["\0\x05\x01\x01\x01\x01\0", /an agent uses this line for its bridge/],
  ])("recognizes another runtime by its output: %j", async (words, message) => {
    const { double, board, limits } = await onPty();
    double.stuck = true;
    double.say(words);
    await expect.poll(() => board.firstWords).toContain(words.trim());
    limits.attachMs = 400;
    await expect(board.attach(true)).rejects.toMatchObject({
      exitCode: 7,
      message: expect.stringMatching(message),
    });
  });
});

describe("a port that does not open", () => {
  // In serialport's wording; the test may run as a user who may open everything.
  it.each([
    ["Error: Permission denied, cannot open /dev/ttyX", /group.*dialout/],
    ["Error Resource temporarily unavailable Cannot lock port", /in use/],
    ["Error: No such file or directory, cannot open /dev/ttyX", /blindrelay devices/],
    ["Error: Input/output error, cannot open /dev/ttyX", /does not open: .*Input\/output/],
  ])("names the fix for %j", (words, fix) => {
    const { exitCode, message } = openFailure("/dev/ttyX", new Error(words));
    expect([exitCode, message]).toEqual([7, expect.stringMatching(fix)]);
  });

  it.each([
    ["/dev/no-such-port", 7, /blindrelay devices/],
    ["tcp://127.0.0.1:1", 7, /nobody listens/],
    ["tcp://nowhere", 2, /not a port/],
  ])("%s ends with %i", async (name, exitCode, message) => {
    await expect(openPort(name)).rejects.toMatchObject({
      exitCode,
      message: expect.stringMatching(message),
    });
  });
});

const real = process.env.ESPRUINO_BIN;
describe.skipIf(real === undefined)("a real Espruino (ESPRUINO_BIN)", () => {
  it("answers, can be interrupted, and identifies itself", async () => {
    const cwd = folder();
    const espruino = new RealEspruino(real as string, cwd, join(cwd, "tty"));
    ends.push(() => espruino.end());
    await espruino.start();
    const board = await open(join(cwd, "tty"));
    await board.attach(true);
    await board.write("foo({");
    await board.attach(true);
    await board.type("while(1);");
    await board.attach(true);
    expect(await board.evaluate("{a:[1,2]}")).toEqual({ a: [1, 2] });
    await expect(board.evaluate("1 2")).rejects.toThrow(BoardError);
    expect(await readBoard(board)).toMatchObject({ board: "LINUX", sha256: true, agentId: null });
  });
});
