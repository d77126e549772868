/**
 * A board becomes an agent: provision, flash, call, through a real relay, over a real pty. Always
 * on the double, and on a real Espruino if ESPRUINO_BIN names one.
 */
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { EspruinoDouble } from "@blindrelay/tools/testing/repl/double";
import { RealEspruino } from "@blindrelay/tools/testing/repl/pty";
import { serve } from "@blindrelay/tools/testing/serial/server";
import { describe, expect, it } from "vitest";
import type { Ended } from "../cli/processes.ts";
import { Terminals } from "../espruino/terminals.ts";
import { FAST, openWorkshop, PROGRAM, written } from "./workshop.ts";

const { house, lamp, ends, plugIn, provision, flash, secretsOf } = openWorkshop();

const wholeWay = async (port: string, id: string): Promise<void> => {
  const made = await provision(port, id);
  expect([made.code, made.stderr.match(/Uncaught/)]).toEqual([0, null]);
  expect(JSON.parse(made.stdout)).toMatchObject({ agent_id: id, packet_version: "2" });
  const tried = await flash(port, ["--dry-run"]);
  expect(JSON.parse(tried.stdout)).toMatchObject({ dry_run: true, online: false });
  const flashed = await flash(port);
  expect([flashed.code, flashed.stderr]).toEqual([0, expect.stringContaining("read back")]);
  expect(JSON.parse(flashed.stdout)).toMatchObject({
    agent_id: id,
    online: true,
    saved: true,
    info: { runtime: expect.stringMatching(/^espruino 2v/), name: id },
  });
  const called = await house.cli(["call", id, "led.set", '{"on":true}']);
  expect(called).toEqual({ code: 0, stdout: '{"on":true}\n', stderr: "" });
  for (const secret of await secretsOf(id)) {
    expect(JSON.stringify([made, tried, flashed])).not.toContain(secret);
  }
};

describe("a board's double", () => {
  it("becomes an agent that answers, and remains one across a restart", async () => {
    const { double, port } = await plugIn();
    await wholeWay(port, "lamp-1");
    // Not on a real Espruino's Linux build: while an agent runs there, the thread that reads the
    // console and the main loop alternate without a lock, and most input is damaged.
    const again = await flash(port);
    expect(JSON.parse(again.stdout)).toMatchObject({
      online: true,
      files: [
        { name: "blindrelay", unchanged: true },
        { name: "program", unchanged: true },
      ],
    });
    for (const secret of await secretsOf("lamp-1")) {
      expect(JSON.stringify(again)).not.toContain(secret);
    }
    double.restart();
    const called = await house.cli(["call", "lamp-1", "echo", "[1]", "--wait", "--timeout", "120"]);
    expect(called.stdout).toBe("[1]\n");
  });

  it("is flashed over TCP", async () => {
    const double = new EspruinoDouble({});
    const { server, port } = await serve((socket) => double.connect(socket));
    ends.push(
      () => server.close(),
      () => double.end(),
    );
    const address = `tcp://127.0.0.1:${port}`;
    expect((await provision(address, "lamp-tcp")).code).toBe(0);
    expect((await flash(address)).code).toBe(0);
  });

  it("without --save starts nothing by itself", async () => {
    const { double, port } = await plugIn();
    await provision(port, "lamp-ram");
    const flashed = await flash(port, ["--no-save"]);
    expect([flashed.code, JSON.parse(flashed.stdout).saved]).toEqual([0, false]);
    expect(double.storage.list()).not.toContain(".bootcde");
  });

  it("gets changes of the program with --watch", async () => {
    const { port } = await plugIn();
    await provision(port, "lamp-watch");
    const program = house.write("watched.js", PROGRAM);
    const args = ["flash", port, "--program", program, "--watch", "--json", ...FAST];
    const watching = house.start(args);
    expect(await watching.json()).toMatchObject({ online: true });
    house.write("watched.js", PROGRAM.replace('"echo"', '"say"'));
    expect(await watching.json()).toMatchObject({
      online: true,
      info: { methods: expect.arrayContaining(["say"]) },
      files: [{ unchanged: true }, { unchanged: false }],
    });
    expect((await watching.stop("SIGINT")).code).toBe(0);
  });

  it("says what a signal leaves on it", async () => {
    const { double, port } = await plugIn();
    await provision(port, "lamp-signal");
    const flashing = house.start(["flash", port, "--program", lamp, ...FAST]);
    await written(double, "program");
    const { code, stderr } = await flashing.stop("SIGINT");
    expect([code, stderr]).toEqual([130, expect.stringContaining("repeat the command")]);
    expect((await flash(port)).code).toBe(0);
  });

  it("uses packet version 1 if it has no AES", async () => {
    const { port } = await plugIn({ aes: false });
    const { stdout } = await provision(port, "lamp-v1");
    expect(JSON.parse(stdout).packet_version).toBe("1");
    expect((await flash(port)).code).toBe(0);
  });

  it("is assigned to an existing agent with a new secret", async () => {
    const { double, port } = await plugIn();
    await provision(port, "lamp-again");
    const [relayToken, before] = await secretsOf("lamp-again");
    const { code } = await house.cli(["provision", port, "--agent", "lamp-again", ...FAST]);
    const [sameToken, after] = await secretsOf("lamp-again");
    expect([code, sameToken, before === after]).toEqual([0, relayToken, false]);
    expect(double.storage.read("blindrelay.json")).toContain(after);
    expect((await flash(port)).code).toBe(0);
  });
});

const real = process.env.ESPRUINO_BIN;
let boards = 0;
describe.skipIf(real === undefined)("a real Espruino (ESPRUINO_BIN)", () => {
  const plugInReal = async () => {
    const cwd = house.path(`real${boards++}`);
    mkdirSync(cwd);
    const port = `${cwd}/tty`;
    const espruino = new RealEspruino(real as string, cwd, port);
    ends.push(() => espruino.end());
    await espruino.start();
    return { espruino, port };
  };

  const echoes = (id: string): Promise<Ended> =>
    house.cli(["call", id, "echo", "[1]", "--wait", "--timeout", "120"]);

  it("becomes an agent that answers, and remains one across a power cut", async () => {
    const { espruino, port } = await plugInReal();
    await wholeWay(port, "espruino-1");
    await espruino.end();
    await espruino.start();
    expect((await echoes("espruino-1")).stdout).toBe("[1]\n");
  });

  it("answers over its UART and a bridge, with its console on the port used for flashing", async () => {
    const { port } = await plugInReal();
    const uart = new Terminals();
    ends.push(() => uart.end());
    await uart.ready();
    const bridge = house.start(["bridge", uart.bridge, "--mode", "sealed", "--json"]);
    const setup = JSON.stringify({ path: uart.board });
    const made = await provision(port, "espruino-3", [
      ...["--serial", "Serial1", "--serial-setup", setup],
    ]);
    expect(made.code).toBe(0);
    const flashed = await flash(port, ["--firmware-version", "1.4.0"]);
    expect(JSON.parse(flashed.stdout)).toMatchObject({ agent_id: "espruino-3", online: true });
    expect((await echoes("espruino-3")).stdout).toBe("[1]\n");
    const { stdout } = await house.cli(["agent", "show", "espruino-3", "--json"]);
    expect(JSON.parse(stdout).firmware_version).toBe("1.4.0");
    // Its console is where it was, so it can be flashed again.
    expect((await flash(port)).code).toBe(0);
    await bridge.stop();
  });

  it("unplugged in the middle: 7, nothing starts, and the next time it works", async () => {
    const { espruino, port } = await plugInReal();
    await provision(port, "espruino-2");
    const flashing = flash(port);
    const medium = join(dirname(port), "espruino.flash");
    while (!readFileSync(medium, "latin1").includes("blindrelay\0\0")) await wait(20);
    await espruino.end();
    expect((await flashing).code).toBe(7);
    await espruino.start();
    expect((await house.cli(["call", "espruino-2", "echo", "[1]"])).code).toBe(4);
    expect((await flash(port)).code).toBe(0);
    expect((await echoes("espruino-2")).stdout).toBe("[1]\n");
  });
});
