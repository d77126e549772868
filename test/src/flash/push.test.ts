/** A program pushed over the relay to a board's double, with the built file and the commands. */
import { mkdirSync, readFileSync } from "node:fs";
import { makeToken } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { openWorkshop } from "./workshop.ts";

const { house, plugIn, provision, flash } = openWorkshop();

const program = (name: string, body: string): string =>
  house.write(name, `export default (agent) => { ${body} };\n`);
const SECOND = program("second.js", 'agent.handle("which", () => ({ n: 2 }));');
const THROWS = program(
  "throws.js",
  'agent.handle("which", () => ({ n: 3 })); throw new Error("no sensor");',
);
const THROWS_LATER = program(
  "later.js",
  `agent.handle("which", () => ({ n: 4 }));
   setTimeout(() => { throw new Error("no answer"); }, 1000);`,
);
const LONG = program("long.js", `agent.handle("text", () => ["${"x".repeat(40_000)}"]);`);
const WRONG = program("wrong.js", "const { a } = agent;");

const push = (id: string, file: string, more: string[] = []) =>
  house.cli(["push", id, file, "--timeout", "120", ...more]);

describe("a program pushed over the relay", () => {
  it("runs instead of the flashed one, across restarts, and the relay shows its version", async () => {
    const { double, port } = await plugIn();
    await provision(port, "pushed");
    await flash(port, ["--firmware-version", "1.0.0"]);
    const pushed = await push("pushed", SECOND, ["--firmware-version", "2.0.0", "--json"]);
    expect([pushed.code, pushed.stderr]).toEqual([0, ""]);
    expect(JSON.parse(pushed.stdout)).toMatchObject({ version: "2.0.0", unchanged: false });
    expect((await house.cli(["call", "pushed", "which"])).stdout).toBe('{"n":2}\n');
    expect((await house.cli(["agent", "list"])).stdout).toMatch(/pushed .* 2\.0\.0 /);
    double.restart();
    const called = () => house.cli(["call", "pushed", "which"]).then(({ stdout }) => stdout);
    await expect.poll(called, { timeout: 180_000, interval: 500 }).toBe('{"n":2}\n');

    const again = await push("pushed", SECOND, ["--json"]);
    expect(JSON.parse(again.stdout)).toMatchObject({ version: "2.0.0", unchanged: true });

    for (const [file, reason] of [
      [THROWS, "no sensor"],
      [THROWS_LATER, "no answer"],
    ] as const) {
      const failed = await push("pushed", file);
      expect([failed.code, failed.stderr]).toEqual([1, expect.stringContaining(reason)]);
      // At once: the failed program is gone when it is said to be.
      expect(await called()).toBe('{"n":2}\n');
    }
  });

  it("can be one for a board whose secret `agent rekey` replaces, if it was provisioned so", async () => {
    const { double, port } = await plugIn();
    await provision(port, "rekeyed", ["--rekey"]);
    await flash(port);
    const said = await house.cli(["agent", "rekey", "rekeyed"]);
    expect([said.code, said.stdout]).toEqual([0, "rekeyed has a new secret\n"]);
    double.restart();
    const { code } = await push("rekeyed", SECOND);
    expect(code).toBe(0);
    // Provisioned anew, it follows that.
    await provision(port, "other", ["--rekey"]);
    await flash(port);
    expect((await push("other", SECOND)).code).toBe(0);
    const { port: small } = await plugIn({ variables: 2_630 });
    const refused = await provision(small, "small", ["--rekey"]);
    expect([refused.code, refused.stderr]).toEqual([7, expect.stringContaining("--rekey needs")]);
  });

  it("may hang forever on a board without a watchdog, which is said before", async () => {
    const { port } = await plugIn({ watchdog: false });
    await provision(port, "unguarded");
    const flashed = await flash(port);
    expect([flashed.code, flashed.stderr]).toEqual([0, expect.stringContaining("no watchdog")]);
    const { code, stderr } = await push("unguarded", SECOND);
    expect([code, stderr]).toEqual([0, expect.stringContaining("unguarded has no watchdog")]);
  });

  it("is refused before anything is sent, each reason with its exit code", async () => {
    const { double, port } = await plugIn({ storageBytes: 65_000 });
    await provision(port, "full");
    await flash(port);
    const before = double.storage.written.length;
    const reasons: [string[], number, string][] = [
      [["full", WRONG], 2, "wrong.js:1:35: syntax: ObjectPattern"],
      [["full", LONG], 7, "has no room for the program: it has 40"],
      [["full", "no-such.js"], 2, "there is no device program"],
      [["full", SECOND, "--timeout", "0"], 2, "10 to 3600"],
    ];
    for (const [args, code, text] of reasons) {
      const ended = await house.cli(["push", ...args]);
      expect([ended.code, ended.stderr]).toEqual([code, expect.stringContaining(text)]);
    }
    expect(double.storage.written).toHaveLength(before);
    double.end();
    const offline = await push("full", SECOND);
    expect([offline.code, offline.stderr]).toEqual([4, expect.stringContaining("no connection")]);
  });

  it("is taken by a board with a push key only with that key, which stays on the board", async () => {
    const { double, port } = await plugIn();
    const key = house.path("pumps.key");
    const made = await provision(port, "guarded", ["--push-key", key]);
    expect([made.code, made.stderr]).toEqual([0, expect.stringContaining("made the push key")]);
    await flash(port);
    const without = await push("guarded", SECOND);
    expect([without.code, without.stderr]).toEqual([
      3,
      expect.stringContaining("it wants a push key: push --push-key FILE"),
    ]);
    const other = house.write("other.key", makeToken("push", new Uint8Array(32).fill(9)));
    const wrong = await push("guarded", SECOND, ["--push-key", other]);
    expect([wrong.code, wrong.stderr]).toEqual([
      3,
      expect.stringContaining("--push-key names another key's file"),
    ]);
    expect((await push("guarded", SECOND, ["--push-key", key])).code).toBe(0);
    const serials = (): string[] =>
      double.storage.list().filter((name) => name.startsWith("push-serial."));
    expect(serials()).toEqual(["push-serial.1"]);

    // The flashed program runs again; key and serial stay, also when it becomes another agent.
    await flash(port);
    const again = await provision(port, "guarded-2");
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining("keeps its push key")]);
    const kept = JSON.parse(double.storage.read("blindrelay.json") as string);
    expect([kept.agent_id, `${kept.push_key}\n`]).toEqual(["guarded-2", readFileSync(key, "utf8")]);
    expect(serials()).toEqual(["push-serial.1"]);
    const closed = await provision(port, "guarded-3", ["--no-push", "--push-key", key]);
    expect([closed.code, closed.stderr]).toEqual([2, expect.stringContaining("omit --push-key")]);
  });

  it("is refused by a board that was provisioned without push: 3", async () => {
    const { double, port } = await plugIn();
    await provision(port, "open");
    await flash(port);
    // From now on, although the flashed SDK could.
    await provision(port, "closed", ["--no-push"]);
    double.restart();
    const called = () => house.cli(["call", "closed", "system.ping"]).then(({ code }) => code);
    await expect.poll(called, { timeout: 180_000, interval: 500 }).toBe(0);
    const before = await push("closed", SECOND);
    expect([before.code, before.stderr]).toEqual([
      3,
      expect.stringContaining("does not accept programs"),
    ]);

    await flash(port);
    expect(double.storage.read("blindrelay")).not.toContain("system.push");
    const { code, stderr } = await push("closed", SECOND);
    expect([code, stderr]).toEqual([3, expect.stringContaining("does not accept programs")]);
  });

  it("brings the modules that a board lacks from a folder, as a flashed one does", async () => {
    const { double, port } = await plugIn();
    await provision(port, "sensing");
    const sensing = (name: string, n: number): string =>
      house.write(
        name,
        `const dht = require("DHT22");
         export default (agent) => { agent.handle("read", () => [${n}, dht.read()]); };\n`,
      );
    const folder = house.path("modules");
    mkdirSync(folder);
    house.write(
      "modules/DHT22.js",
      '/* as require("DHT22") */ exports.read = function() { return require("Wire").get(); };',
    );
    const wire = "exports.get=function(){return require('Storage')?21:0}";
    house.write("modules/Wire.min.js", wire);
    const modules = ["--modules", folder];
    const first = sensing("sensing-1.js", 1);
    const missing = await flash(port, [], first);
    expect(missing).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("does not have: DHT22: specify --modules DIR"),
    });
    expect(double.storage.list()).not.toContain("program");
    const nowhere = await flash(port, ["--modules", house.path("nowhere")], first);
    expect(nowhere).toMatchObject({ code: 2, stderr: expect.stringContaining("no folder") });
    const flashed = await flash(port, modules, first);
    expect(flashed).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("carried along with the program: Wire, DHT22"),
    });
    const read = () => house.cli(["call", "sensing", "read"]).then(({ stdout }) => stdout);
    expect(await read()).toBe("[1,21]\n");

    const second = sensing("sensing-2.js", 2);
    const pushed = await push("sensing", second, modules);
    expect([pushed.code, pushed.stderr]).toEqual([0, expect.stringContaining("Wire, DHT22")]);
    expect(await read()).toBe("[2,21]\n");
  });

  it("goes to a whole fleet in stages, until one fails", async () => {
    for (const id of ["fleet-1", "fleet-2"]) {
      const { port } = await plugIn();
      await provision(port, id);
      await flash(port);
    }
    const fleet = async (file: string) => {
      const args = ["push", file, "--all", "--staged", "50%", "--timeout", "120", "--json"];
      const { code, stdout } = await house.cli(args);
      return { code, ...JSON.parse(stdout) };
    };
    const failed = await fleet(THROWS);
    expect([failed.code, failed.failed.length, failed.untouched.length]).toEqual([1, 1, 1]);
    expect(failed.failed[0].reason).toContain("no sensor");
    const { code, kept } = await fleet(SECOND);
    expect([code, kept.sort()]).toEqual([0, ["fleet-1", "fleet-2"]]);

    const wrong = await house.cli(["push", SECOND, "--staged", "5"]);
    expect([wrong.code, wrong.stderr]).toEqual([2, expect.stringContaining("more than 0%")]);
    expect((await house.cli(["push", SECOND])).code).toBe(2);
  });
});
