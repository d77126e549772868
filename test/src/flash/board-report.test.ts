/** What `board report` finds on the double and, if ESPRUINO_BIN names one, on a real Espruino. */
import { mkdirSync } from "node:fs";
import { RealEspruino } from "@blindrelay/tools/testing/repl/pty";
import { expect, it } from "vitest";
import { FAST, openWorkshop, written } from "./workshop.ts";

const { house, ends, plugIn, provision, flash, secretsOf } = openWorkshop();

const report = (port: string, more: string[] = []) =>
  house.cli(["board", "report", port, ...FAST, ...more]);

it("tells everything about a board and nothing about its owner, and starts it again", async () => {
  const { double, port } = await plugIn({ watchdog: false });
  expect((await provision(port, "reported", ["--name", "Hall 7"])).code).toBe(0);
  expect((await flash(port)).code).toBe(0);
  const { code, stdout } = await report(port);
  expect(code).toBe(0);
  for (const line of [
    "engine: Espruino 2v29 DOUBLE",
    "agent: packet version 2, over a network, accepts pushes",
    /^files: .*blindrelay.* 0 others$/m,
    "SHA-256: right",
    "AES-128: right",
    /^AES-128 of a block: [\d.]+ ms$/m,
    /^memory: 4000 of 5000 variables of 16 bytes free$/m,
    /^a file of 256 bytes: read back, [\d.]+ ms$/m,
    "random: 32 draws, 0 repeated",
    "random after reset(): another",
    "watchdog of 8 s: not there (Timeout on LSI ready)",
    /^line: a question \d+ ms/m,
    "reason of restart: unknown to the engine",
  ])
    expect(stdout).toMatch(line);
  const known = [...(await secretsOf("reported")), "reported", "Hall 7", house.url, "0001", port];
  for (const text of known) expect(stdout).not.toContain(text);
  expect(double.storage.list()).not.toContain("br.report");
  const called = await house.cli(["call", "reported", "echo", "[1]", "--wait"]);
  expect(called.stdout).toBe("[1]\n");
});

it("starts the board again when it is interrupted", async () => {
  const { double, port } = await plugIn();
  expect((await provision(port, "interrupted")).code).toBe(0);
  expect((await flash(port)).code).toBe(0);
  const reporting = house.start(["board", "report", port, ...FAST]);
  await written(double, "br.report");
  const { code, stdout, stderr } = await reporting.stop("SIGINT");
  expect([code, stdout, stderr]).toEqual([130, "", expect.stringContaining("runs again")]);
  const called = await house.cli(["call", "interrupted", "echo", "[1]", "--wait"]);
  expect(called.stdout).toBe("[1]\n");
});

it("tells what a board lacks or does wrongly", async () => {
  const { double, port } = await plugIn({ aes: false });
  const { write } = double.storage;
  double.storage.write = (name, ...rest) =>
    name !== "br.report" && write.call(double.storage, name, ...rest);
  const { code, stdout } = await report(port, ["--json"]);
  expect([code, JSON.parse(stdout)]).toEqual([
    0,
    expect.objectContaining({
      agent: "not provisioned",
      "AES-128": expect.stringContaining("not there"),
      "a file of 256 bytes": "NOT stored",
      "watchdog of 25 s": "accepted",
    }),
  ]);
});

const real = process.env.ESPRUINO_BIN;
it.skipIf(real === undefined)("tells everything about a real Espruino (ESPRUINO_BIN)", async () => {
  const cwd = house.path("real");
  mkdirSync(cwd);
  const espruino = new RealEspruino(real as string, cwd, `${cwd}/tty`);
  ends.push(() => espruino.end());
  await espruino.start();
  const { code, stdout } = await report(`${cwd}/tty`);
  process.stderr.write(stdout);
  expect([code, stdout.match(/WRONG|NOT|not there/)]).toEqual([0, null]);
});

it("says nothing of a program where no port opens", async () => {
  const { code, stderr } = await report("/dev/nosuch");
  expect([code, stderr]).toEqual([7, expect.stringMatching(/^blindrelay: there is no port/)]);
});
