/**
 * By hand: the programs that people use a port with, through `blindrelay attach`, with a delay each
 * way: avrdude and mpremote with doubles of their boards; then socat, pyserial and picocom, one
 * after the other, on one port.
 *
 *   node test/src/bridge/tools-proof.ts --delay 100
 *
 * A program that is not installed is skipped and named (`PYTHONPATH` for a mpremote that is not).
 */
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { text } from "node:stream/consumers";
import { parseArgs } from "node:util";
import { micropython, uno } from "@blindrelay/tools/testing/serial/boards";
import { Terminal } from "../cli/terminal.ts";
import { SlowWay } from "../instruments/slow-way.ts";
import { BridgeHouse, newsOf, until } from "./world.ts";

const { values } = parseArgs({ options: { delay: { type: "string", default: "100" } } });
const PYTHON = "/usr/bin/python3";

const world = new BridgeHouse();
await world.open();
const way = new SlowWay(world.house.url, Number(values.delay));
await world.house.cli(["profile", "set-url", await way.open()]);

const attached = async (id: string, port: string, side: readonly string[]) => {
  const added = await world.add(id);
  await newsOf(world.bridge(added, { port, mode: "raw" }), "agent", "online");
  const running = world.house.start(["attach", id, ...side, "--json"]);
  const { where } = await newsOf(running, "attached");
  return { running, where: String(where) };
};

const run = async (file: string, words: readonly string[]) => {
  const began = performance.now();
  const tool = spawn(file, words, { stdio: ["ignore", "pipe", "pipe"] });
  const [out, err, [code]] = await Promise.all([
    text(tool.stdout),
    text(tool.stderr),
    once(tool, "close"),
  ]);
  return { code, said: out + err, seconds: Math.round((performance.now() - began) / 100) / 10 };
};

const has = (file: string, ...words: readonly string[]): boolean => {
  const { status } = spawnSync(file, words);
  // avrdude ends its help with 1, as Python ends a failed import.
  const isThere = status === 0 || (status === 1 && file !== PYTHON);
  if (!isThere) console.log(`${file} ${words.join(" ")}: skipped`);
  return isThere;
};

const tell = (
  what: string,
  isGood: boolean,
  { code, said, seconds }: Awaited<ReturnType<typeof run>>,
) => {
  console.log(JSON.stringify({ what, good: isGood && code === 0, seconds }));
  if (!isGood || code !== 0) console.log(said);
};

try {
  if (has("avrdude", "-?")) {
    const image = randomBytes(2_048);
    const file = world.house.path("app.bin");
    writeFileSync(file, image);
    for (const side of ["--pty", "--tcp"] as const) {
      const { server, port, board } = await uno();
      const id = `uno-${side.slice(2)}`;
      const place = side === "--pty" ? world.house.path("ttyUno") : "0";
      const { running, where } = await attached(id, `rfc2217://127.0.0.1:${port}`, [side, place]);
      // A terminal has no DTR: the board is reset by a call.
      const steps = '{"steps": [{"dtr": false}, {"dtr": true, "after_ms": 100}]}';
      const reset = await world.house.cli(["call", id, "serial.signals", steps]);
      if (reset.code !== 0) throw new Error(reset.stderr);
      const named = where.replace("tcp://", "net:");
      const flags = ["-p", "atmega328p", "-c", "arduino", "-P", named, "-b", "115200"];
      const ended = await run("avrdude", [...flags, "-D", "-U", `flash:w:${file}:r`]);
      tell(`avrdude ${side}`, image.equals(board.flash.subarray(0, image.length)), ended);
      await running.stop();
      server.close();
    }
  }
  if (has(PYTHON, "-c", "import serial, mpremote")) {
    const { server, port, board } = await micropython();
    const side = ["--rfc2217", "0"];
    const { running, where } = await attached("mpy", `rfc2217://127.0.0.1:${port}`, side);
    const words = ["-m", "mpremote", "connect", where, "exec", "print('hello')"];
    const ended = await run(PYTHON, words);
    tell("mpremote", ended.said.includes("hello") && board.ran.length > 0, ended);
    await running.stop();
    server.close();
  }
  const cable = world.cable();
  const device = await cable.plug();
  cable.received = (bytes) => device.write(bytes);
  const path = world.house.path("ttyShared");
  const pty = await attached("shared", cable.path, ["--pty", path]);
  const socat = world.tool(path);
  let seen = "";
  socat.stdout.on("data", (bytes: Buffer) => {
    seen += bytes.toString();
  });
  socat.stdin.write("socat");
  await until(() => seen === "socat");
  socat.kill();
  console.log(JSON.stringify({ what: "socat on the pty", good: true }));
  const TERMINAL = `
import serial, sys
port = serial.serial_for_url(sys.argv[1], baudrate=57600, timeout=5)
for n in range(20):
    port.write(b"line %d\\n" % n)
    assert port.readline() == b"line %d\\n" % n, n
port.close()
`;
  if (has(PYTHON, "-c", "import serial")) {
    tell("pyserial on the pty", true, await run(PYTHON, ["-c", TERMINAL, path]));
  }
  if (has("picocom", "--help")) {
    const terminal = new Terminal(["picocom", "-q", "-b", "9600", path], {
      PATH: process.env.PATH ?? "",
    });
    terminal.type("typed");
    await terminal.sees(/typed/);
    terminal.kill();
    console.log(JSON.stringify({ what: "picocom on the pty", good: true }));
  }
  await pty.running.stop();
  const side = world.house.start(["attach", "shared", "--rfc2217", "0", "--json"]);
  const { where } = await newsOf(side, "attached");
  if (has(PYTHON, "-c", "import serial")) {
    tell("pyserial over RFC 2217", true, await run(PYTHON, ["-c", TERMINAL, String(where)]));
  }
  await side.stop();
} finally {
  await world.close();
  await way.close();
}
process.exit();
