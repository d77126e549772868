/** `provision --wifi`: the password from standard input goes to the board, and nowhere else. */
import { mkdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { RealEspruino } from "@blindrelay/tools/testing/repl/pty";
import { WIFI_MODULE } from "@blindrelay/tools/testing/repl/wifi";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { describe, expect, it } from "vitest";
import { FAST, openWorkshop, PROGRAM } from "./workshop.ts";

const { house, ends, plugIn, flash } = openWorkshop();

const SSID = "Küche 7";
const PASSWORD = "correct horse battery";
/** The text as a board holds it. */
const bytes = (text: string): string => Buffer.from(text).toString("latin1");
const AIR = { ssid: bytes(SSID), password: PASSWORD };

const provision = (port: string, id: string, input: string, ssid = SSID) =>
  house.cli(["provision", port, "--id", id, "--wifi", ssid, ...FAST], {}, input);

describe("a board's double", () => {
  it("joins the given Wi-Fi, and flash sees it online", async () => {
    const { double, port } = await plugIn({ air: AIR });
    const made = await provision(port, "wifi-1", `${PASSWORD}\nanother line\n`);
    expect([made.code, made.stderr]).toEqual([0, expect.not.stringContaining("module")]);
    const config = JSON.parse(double.storage.read("blindrelay.json") as string);
    expect(config.wifi).toEqual({ ssid: bytes(SSID), password: PASSWORD });

    const program = house.write("lamp-wifi.js", PROGRAM);
    const flashed = await flash(port, [], program);
    expect([flashed.code, flashed.stderr]).toEqual([0, expect.stringContaining("is joined")]);
    expect(double.storage.read("blindrelay")).toContain("useNetwork");
    const called = await house.cli(["call", "wifi-1", "led.set", '{"on":true}']);
    expect(called.stdout).toBe('{"on":true}\n');
    expect(JSON.stringify([made, flashed])).not.toContain(PASSWORD);
  });

  it("reports that the network refuses the password", async () => {
    const { port } = await plugIn({ air: AIR });
    expect((await provision(port, "wifi-2", "a wrong password\n")).code).toBe(0);
    const flashed = await flash(port, ["--timeout", "5"]);
    expect([flashed.code, flashed.stderr]).toEqual([
      ...[4, expect.stringContaining(`Wi-Fi "${SSID}" refuses the password`)],
    ]);
  });

  it("changes only its Wi-Fi if nothing else is specified", async () => {
    const { double, port } = await plugIn({ air: AIR });
    const named = ["--id", "wifi-8", "--name", "Hall"];
    const first = ["provision", port, ...named, "--wifi", "hall 7", ...FAST];
    expect((await house.cli(first, {}, `${PASSWORD}\n`)).code).toBe(0);
    expect((await flash(port, ["--timeout", "5"])).code).toBe(4);
    const before = JSON.parse(double.storage.read("blindrelay.json") as string);
    const change = ["provision", port, "--wifi", SSID, "--json", ...FAST];
    const changed = await house.cli(change, {}, `${PASSWORD}\n`);
    expect([changed.code, changed.stderr]).toEqual([0, expect.stringContaining("only its Wi-Fi")]);
    expect(JSON.parse(changed.stdout)).toMatchObject({ agent_id: "wifi-8", place: port });
    expect(JSON.stringify(changed)).not.toContain(PASSWORD);
    const after = JSON.parse(double.storage.read("blindrelay.json") as string);
    expect(after).toEqual({ ...before, wifi: { ssid: bytes(SSID), password: PASSWORD } });
    const info = () => house.cli(["call", "wifi-8", "system.info"]).then(({ stdout }) => stdout);
    await expect.poll(info, { timeout: 60_000 }).toContain('"name":"Hall"');
    expect((await house.cli(["agent", "show", "board"])).code).toBe(5);
  });

  it("cannot change its Wi-Fi if a bridge carries its messages", async () => {
    const { port } = await plugIn({ uart: true });
    const made = ["provision", port, "--id", "wifi-9", "--serial", "Serial1", ...FAST];
    expect((await house.cli(made)).code).toBe(0);
    const { code, stderr } = await house.cli(
      ["provision", port, "--wifi", SSID, ...FAST],
      {},
      "\n",
    );
    expect([code, stderr]).toEqual([7, expect.stringContaining("provision it again")]);
  });

  it("accepts an open network, and reports it", async () => {
    const { double, port } = await plugIn();
    const made = await provision(port, "wifi-3", "\n");
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining("is an open network")]);
    expect(made.stderr).toContain('no module "Wifi"');
    const config = JSON.parse(double.storage.read("blindrelay.json") as string);
    expect(config.wifi).toEqual({ ssid: bytes(SSID), password: "" });
  });

  it("is not changed for an invalid name or password", async () => {
    const { double, port } = await plugIn();
    for (const [ssid, input] of [
      ["x".repeat(33), PASSWORD],
      ["", PASSWORD],
      [SSID, "1234567\n"],
      [SSID, "y".repeat(64)],
      [SSID, ""],
    ] as const) {
      const made = await provision(port, "wifi-4", input, ssid);
      expect([made.code, made.stdout]).toEqual([2, ""]);
      if (input !== "") expect(made.stderr).not.toContain(input.trim());
    }
    const both = ["provision", port, "--id", "wifi-4", "--wifi", SSID, "--serial", "Serial1"];
    expect((await house.cli(both, {}, PASSWORD)).code).toBe(2);
    expect(double.storage.list()).toEqual([]);
    expect((await house.cli(["agent", "show", "wifi-4"])).code).toBe(5);
  });

  it.skipIf(!HAS_SOCAT)("prompts for the password at a terminal, without echo", async () => {
    const { double, port } = await plugIn();
    const asked = ["provision", port, "--id", "wifi-5", "--wifi", "hall-7", ...FAST];
    const terminal = house.terminal(asked);
    await terminal.sees(/Password of Wi-Fi "hall-7"/);
    terminal.type(`${PASSWORD}\r`);
    expect(await terminal.ended()).toBe(0);
    expect(terminal.said.text).not.toContain(PASSWORD);
    expect(double.storage.read("blindrelay.json")).toContain(PASSWORD);
  });
});

it("gives a Moddable project its network", async () => {
  const out = house.path("moddable-wifi");
  const made = ["provision", "--out", out, "--id", "wifi-6", "--wifi", SSID];
  expect((await house.cli(made, {}, PASSWORD)).code).toBe(0);
  const project = house.path("moddable-project");
  const program = house.write("moddable-lamp.js", PROGRAM);
  const flashed = await house.cli(
    ["flash", "--target", "moddable", "--program", program, "--config", out, "--out", project],
    { PATH: dirname(process.execPath) },
  );
  expect([flashed.code, flashed.stderr]).toEqual([0, expect.anything()]);
  const { config } = JSON.parse(readFileSync(join(project, "agent.json"), "utf8"));
  expect(config).toMatchObject({ ssid: SSID, password: PASSWORD });
  expect(JSON.stringify(flashed)).not.toContain(PASSWORD);
  expect(flashed.stderr).not.toContain("ssid");
});

const real = process.env.ESPRUINO_BIN;
describe.skipIf(real === undefined)("a real Espruino (ESPRUINO_BIN)", () => {
  it("joins the Wi-Fi that it was given", async () => {
    const cwd = house.path("real-wifi");
    mkdirSync(cwd);
    const port = `${cwd}/tty`;
    const espruino = new RealEspruino(real as string, cwd, port);
    ends.push(() => espruino.end());
    await espruino.start();
    const named = ["--id", "wifi-7", "--name", "Küche 温室", "--wifi", "hall 6", ...FAST];
    expect((await house.cli(["provision", port, ...named], {}, `${PASSWORD}\n`)).code).toBe(0);
    const change = ["provision", port, "--wifi", "hall 7", ...FAST];
    expect((await house.cli(change, {}, `${PASSWORD}\n`)).code).toBe(0);
    const module = `global.air={ssid:"hall 7",password:"${PASSWORD}"};${WIFI_MODULE}`;
    const program = house.write(
      "lamp-air.js",
      `export default (agent) => {
  require("Storage").write("Wifi", ${JSON.stringify(module)});
  agent.handle("echo", (params) => params);
};`,
    );
    const flashed = await flash(port, [], program);
    expect([flashed.code, flashed.stderr]).toEqual([0, expect.stringContaining("is joined")]);
    const called = await house.cli(["call", "wifi-7", "echo", "[1]"]);
    expect(called.stdout).toBe("[1]\n");
    const info = await house.cli(["call", "wifi-7", "system.info"]);
    expect(info.stdout).toContain('"name":"Küche 温室"');
  });
});
