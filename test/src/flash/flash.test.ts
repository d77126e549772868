/**
 * A board becomes an agent: provision, flash, call, through a real relay, over a real pty. On the
 * double always, and on a real Espruino where ESPRUINO_BIN names one.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { EspruinoDouble } from "@blindrelay/tools/testing/console/double";
import type { DoubleOptions } from "@blindrelay/tools/testing/console/options";
import { Cable, RealEspruino } from "@blindrelay/tools/testing/console/pty";
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest";
import { type Ended, House, PASSWORD } from "../cli/processes.ts";
import { Terminals } from "../espruino/terminals.ts";

const PROGRAM = `
/** A lamp. */
export default (agent) => {
  let on = false;
  agent.handle("led.set", (params) => {
    on = params.on === true; // as told
    return { on: on };
  });
  agent.handle("echo", (params) => params);
};
`;
const FAST = ["--baud", "921600"];

// Each test is a handful of processes on a pty; a busy machine takes its time for that.
vi.setConfig({ testTimeout: 120_000 });

const house = new House();
let lamp: string;
const ends: (() => unknown)[] = [];
let boards = 0;

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
  lamp = house.write("lamp.js", PROGRAM);
});

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end();
});

afterAll(() => house.close());

/** A board and the pty it hangs on. */
const plugIn = async (options: Partial<DoubleOptions> = {}) => {
  const double = new EspruinoDouble(options);
  const port = house.path(`tty${boards++}`);
  const cable = new Cable(double, port);
  ends.push(
    () => double.end(),
    () => cable.end(),
  );
  await cable.plugIn();
  return { double, cable, port };
};

const provision = (port: string, id: string, more: string[] = []): Promise<Ended> =>
  house.cli(["provision", port, "--id", id, "--json", ...FAST, ...more]);

const flash = (port: string, more: string[] = [], program = lamp): Promise<Ended> =>
  house.cli(["flash", port, "--program", program, "--json", ...FAST, ...more]);

const secretsOf = async (id: string): Promise<string[]> => {
  const { stdout } = await house.cli(["agent", "export", id, "--json"]);
  const { api_token, agent_token } = JSON.parse(stdout);
  return [api_token, agent_token];
};

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
  const again = await flash(port);
  expect(JSON.parse(again.stdout)).toMatchObject({
    online: true,
    files: [
      { name: "blindrelay", unchanged: true },
      { name: "program", unchanged: true },
    ],
  });
  for (const secret of await secretsOf(id)) {
    expect(JSON.stringify([made, tried, flashed, again])).not.toContain(secret);
  }
};

describe("a board's double", () => {
  it("becomes an agent that answers, and stays one over a restart", async () => {
    const { double, port } = await plugIn();
    await wholeWay(port, "lamp-1");
    double.restart();
    const call = () => house.cli(["call", "lamp-1", "echo", "[1]", "--timeout", "20"]);
    let called = await call();
    for (let tries = 0; called.code === 4 && tries < 20; tries++) called = await call();
    expect(called.stdout).toBe("[1]\n");
  });

  it("is flashed over TCP", async () => {
    const { cable } = await plugIn();
    await cable.unplug();
    expect((await provision(cable.tcp, "lamp-tcp")).code).toBe(0);
    expect((await flash(cable.tcp)).code).toBe(0);
  });

  it("without --save starts nothing by itself", async () => {
    const { double, port } = await plugIn();
    await provision(port, "lamp-ram");
    const flashed = await flash(port, ["--no-save"]);
    expect([flashed.code, JSON.parse(flashed.stdout).saved]).toEqual([0, false]);
    expect(double.storage.list()).not.toContain(".bootcde");
  });

  it("gets what changed in the program with --watch", async () => {
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

  it("speaks packet version 1 where it has no AES", async () => {
    const { port } = await plugIn({ aes: false });
    const { stdout } = await provision(port, "lamp-v1");
    expect(JSON.parse(stdout).packet_version).toBe("1");
    expect((await flash(port)).code).toBe(0);
  });

  it("is given to an agent that exists with a new secret", async () => {
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

describe("a board without a network", () => {
  const PINS = ["--serial-setup", '{"rx":"D8","tx":"D6"}'];
  const SERIAL = ["--serial", "Serial1", "--serial-baud", "921600", ...PINS];

  it("is seen online over its own UART, and answers through a bridge from then on", async () => {
    const { double, port } = await plugIn({ uart: true });
    const made = await provision(port, "wired", SERIAL);
    expect([made.code, made.stderr]).toEqual([0, expect.not.stringContaining("--relay-url")]);
    expect(JSON.parse(double.storage.read("blindrelay.json") as string).serial).toEqual({
      port: "Serial1",
      baud: 921_600,
      options: { rx: "D8", tx: "D6" },
    });
    const flashed = await flash(port);
    expect(JSON.parse(flashed.stdout)).toMatchObject({ agent_id: "wired", online: true });
    expect(flashed.stderr).toContain(`blindrelay bridge ${port} --mode sealed`);
    for (const secret of await secretsOf("wired")) expect(flashed.stderr).not.toContain(secret);

    double.restart();
    const again = await flash(port);
    expect([again.code, again.stderr]).toEqual([7, expect.stringContaining("hold its button")]);

    const bridge = house.start(["bridge", port, "--mode", "sealed", "--json", ...FAST]);
    const call = () => house.cli(["call", "wired", "echo", "[1]", "--timeout", "20"]);
    let called = await call();
    for (let tries = 0; called.code === 4 && tries < 20; tries++) called = await call();
    expect(called.stdout).toBe("[1]\n");
    await bridge.stop();
  });

  it("says itself that the UART of its configuration is not there: 7", async () => {
    const { double, port } = await plugIn();
    await provision(port, "elsewhere");
    const config = JSON.parse(double.storage.read("blindrelay.json") as string);
    const serial = { port: "Serial2", baud: 9600 };
    double.storage.write("blindrelay.json", JSON.stringify({ ...config, serial }));
    const { code, stderr } = await flash(port, ["--timeout", "1"]);
    expect([code, stderr]).toEqual([7, expect.stringContaining("this board has no Serial2")]);
  });

  it("whose UART has another rate than its console is started, and nobody waits for it", async () => {
    const { port } = await plugIn({ uart: true });
    await provision(port, "slow-line", ["--serial", "Serial1", "--serial-baud", "9600"]);
    const { code, stdout, stderr } = await flash(port);
    expect([code, JSON.parse(stdout).online]).toEqual([0, false]);
    expect(stderr).toContain("9600 baud");
  });

  it("has the UART that it is provisioned for, or: 7", async () => {
    const { port } = await plugIn({ uart: true });
    const { code, stderr } = await provision(port, "no-uart", ["--serial", "Serial4"]);
    expect([code, stderr]).toEqual([7, expect.stringContaining("no UART Serial4")]);
  });
});

describe("the version of a program", () => {
  it("is what the board says at every login, until another is flashed", async () => {
    const { port } = await plugIn();
    await provision(port, "versioned");
    const shown = async (): Promise<string | null> => {
      const { stdout } = await house.cli(["agent", "show", "versioned", "--json"]);
      return JSON.parse(stdout).firmware_version;
    };
    expect((await flash(port, ["--firmware-version", "1.4.0"])).code).toBe(0);
    await expect.poll(shown, { timeout: 15_000 }).toBe("1.4.0");
    expect((await house.cli(["agent", "list"])).stdout).toMatch(/versioned .* 1\.4\.0 /);
    expect((await flash(port, ["--firmware-version", "1.5.0-ä"])).code).toBe(2);
    const next = await flash(port, ["--firmware-version", "1.5.0"]);
    expect(JSON.parse(next.stdout).files[1]).toMatchObject({ name: "program", unchanged: true });
    await expect.poll(shown, { timeout: 15_000 }).toBe("1.5.0");
    expect((await flash(port)).code).toBe(0);
    await expect.poll(shown, { timeout: 15_000 }).toBeNull();
  });
});

describe("what goes wrong", () => {
  const agents = async (): Promise<string[]> => {
    const { stdout } = await house.cli(["agent", "list", "--json"]);
    return JSON.parse(stdout).items.map(({ agent_id }: { agent_id: string }) => agent_id);
  };

  it("unplugged while provisioning: 7, and no agent is left behind", async () => {
    const { double, cable, port } = await plugIn();
    double.storage.onWrite = (name) => {
      if (name === "boot.1") void cable.unplug();
    };
    const { code, stderr } = await provision(port, "lost-1");
    expect([code, stderr]).toEqual([7, expect.stringContaining("went away")]);
    expect(await agents()).not.toContain("lost-1");
    expect(double.storage.read("blindrelay.json")).toBeUndefined();
  });

  it("unplugged in the middle: 7, nothing starts, and the next time it works", async () => {
    const { double, cable, port } = await plugIn();
    await provision(port, "lost-2");
    expect((await flash(port)).code).toBe(0);
    expect(double.storage.list()).toContain(".bootcde");
    double.storage.onWrite = (name) => {
      if (name === "program") void cable.unplug();
    };
    const longer = house.write("longer.js", `${PROGRAM}const table = "${"x".repeat(2_000)}";`);
    const { code, stderr } = await flash(port, [], longer);
    expect([code, stderr]).toEqual([7, expect.stringContaining("went away")]);
    expect(double.storage.list()).not.toContain(".bootcde");
    double.storage.onWrite = () => undefined;
    await cable.plugIn();
    expect((await flash(port, [], longer)).code).toBe(0);
  });

  it("a byte that changed on the way is found by reading back, and written again", async () => {
    const { double, port } = await plugIn();
    await provision(port, "spoilt");
    const { write } = double.storage;
    let spoilt = 0;
    double.storage.write = (name, data, offset, total) => {
      const spoils = name === "program" && spoilt++ === 0;
      return write.call(
        double.storage,
        name,
        spoils ? data.replace("lamp", "lump").replace("on", "no") : data,
        offset,
        total,
      );
    };
    expect((await flash(port)).code).toBe(0);
    expect(double.storage.written.filter((name) => name === "program")).toHaveLength(2);
  });

  it("no space: 7, with the numbers, and nothing was touched", async () => {
    const { double, port } = await plugIn({ storageBytes: 16_384 });
    await provision(port, "small");
    const { code, stderr } = await flash(port);
    expect([code, stderr]).toEqual([7, expect.stringMatching(/not enough space: \d+ bytes/)]);
    expect(double.storage.list()).not.toContain("blindrelay");
  });

  it("no SHA-256: 7 for provision, unless slow crypto is welcome", async () => {
    const { port } = await plugIn({ sha256: false });
    const refused = await provision(port, "slow");
    expect([refused.code, refused.stderr]).toEqual([7, expect.stringContaining("no SHA-256")]);
    expect((await provision(port, "slow", ["--slow-crypto"])).code).toBe(0);
  });

  it("not provisioned: 7; not a port: 7; a program that it would not run: 2", async () => {
    const { double, port } = await plugIn();
    const bare = await flash(port);
    expect([bare.code, bare.stderr]).toEqual([7, expect.stringContaining("blindrelay provision")]);
    const nowhere = await flash(house.path("no-such-tty"));
    expect([nowhere.code, nowhere.stderr]).toEqual([7, expect.stringContaining("devices")]);
    const modern = house.write(
      "modern.js",
      "export default async ({ handle }) => { handle?.('x'); };",
    );
    const dialect = await flash(port, [], modern);
    expect([dialect.code, dialect.stderr]).toEqual([
      2,
      expect.stringMatching(/modern\.js:1:\d+: .*async/),
    ]);
    await provision(port, "names");
    const unknown = house.write(
      "names.js",
      "export default (agent) => { agent.handle('x', () => nixda()); };",
    );
    const names = await flash(port, [], unknown);
    expect([names.code, names.stderr]).toEqual([2, expect.stringContaining("nixda")]);
    expect(double.storage.list()).not.toContain("program");
  });

  it("no secret at hand to prove it with: 2 before anything is touched, unless nobody asks", async () => {
    const { double, port } = await plugIn();
    await provision(port, "unproven");
    const args = ["--profile", "stranger", "flash", port, "--program", lamp, ...FAST];
    const { code, stderr } = await house.cli(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining("no end-to-end secret")]);
    expect(double.storage.list()).not.toContain("blindrelay");
    expect((await house.cli([...args, "--no-check"])).code).toBe(0);
  });

  it("a program that throws at its start: 7, in the board's own words", async () => {
    const { port } = await plugIn();
    await provision(port, "thrower");
    const thrower = house.write(
      "thrower.js",
      'export default () => { throw new Error("no lamp"); };',
    );
    const { code, stderr } = await flash(port, [], thrower);
    expect([code, stderr]).toEqual([7, expect.stringContaining("no lamp")]);
  });
});

describe("monitor and devices", () => {
  it("shows what the board says, types to it, and comes back with the port", async () => {
    const { double, cable, port } = await plugIn();
    const monitor = house.start(["monitor", port, "--json", ...FAST]);
    const said = setInterval(() => double.print("warm"), 50);
    expect(await monitor.json()).toEqual({ line: "warm" });
    clearInterval(said);
    await cable.unplug();
    await cable.plugIn();
    const again = setInterval(() => double.print("warmer"), 50);
    let line = "warm";
    while (line !== "warmer") line = (await monitor.json<{ line: string }>()).line;
    clearInterval(again);
    const { code, stderr } = await monitor.stop("SIGINT");
    expect([code, stderr]).toEqual([0, expect.stringContaining("is back")]);
  });

  it("hands what is typed to the board, and ends with 7 where it may not wait", async () => {
    const { double, cable, port } = await plugIn();
    const typed = house.start(
      ["monitor", port, "--no-reconnect", "--json", ...FAST],
      {},
      "print(6*7)\n",
    );
    let line = "";
    while (line !== "42") line = (await typed.json<{ line: string }>()).line;
    await cable.unplug();
    expect((await typed.ended).code).toBe(7);
    expect(double.lost).toBe(0);
  });

  it("lists what answers, without disturbing it", async () => {
    const { double, port } = await plugIn();
    const { double: mute, port: silent } = await plugIn();
    mute.stuck = true;
    const { starts } = double;
    const nowhere = house.path("no-such-tty");
    const { code, stdout } = await house.cli(["devices", port, silent, nowhere, "--json"]);
    expect([code, double.starts]).toEqual([0, starts]);
    expect(JSON.parse(stdout).items).toMatchObject([
      { port, answers: "espruino", board: "DOUBLE", agent_id: null, problem: null },
      { port: silent, answers: "silent", problem: expect.stringContaining("nothing answers") },
      { port: nowhere, answers: "closed", problem: expect.stringContaining("no port") },
    ]);
  });
});

describe("files in place of a board", () => {
  it("are for one board, once", async () => {
    const out = house.path("board-files");
    const made = await house.cli(["provision", "--out", out, "--id", "filed", "--json"]);
    expect([made.code, JSON.parse(made.stdout).packet_version]).toEqual([0, "1"]);
    const config = JSON.parse(readFileSync(`${out}/blindrelay.json`, "utf8"));
    expect([config.relay_token, config.agent_token]).toEqual(await secretsOf("filed"));
    expect(statSync(`${out}/blindrelay.json`).mode & 0o777).toBe(0o600);
    const again = await house.cli(["provision", "--out", out, "--id", "filed-2"]);
    expect([again.code, again.stderr]).toEqual([7, expect.stringContaining("empty folder")]);
  });

  it("make a project for Moddable that says how to build it", async () => {
    const out = house.path("xs-files");
    await house.cli(["provision", "--out", out, "--id", "xs-1", "--packet-version", "2"]);
    const project = house.path("xs-project");
    const args = [
      "flash",
      "--target",
      "moddable",
      "--program",
      lamp,
      "--config",
      out,
      "--out",
      project,
    ];
    const { code, stdout, stderr } = await house.cli([...args, "--json"]);
    expect([code, stderr]).toEqual([0, expect.stringContaining("mcconfig is not here")]);
    const { files, commands } = JSON.parse(stdout);
    for (const file of files) expect(existsSync(`${project}/${file}`)).toBe(true);
    expect(commands[0]).toBe("mcconfig -m -p esp32 provision=1");
    const { modules } = JSON.parse(readFileSync(`${project}/blindrelay/manifest.json`, "utf8"));
    for (const path of Object.values<string>(modules)) {
      if (path.startsWith(".")) expect(existsSync(`${project}/blindrelay/${path}.js`)).toBe(true);
    }
    const inProject = (name: string) =>
      JSON.parse(readFileSync(`${project}/${name}`, "utf8")).config;
    expect(inProject("agent.json")).toMatchObject({ agent_id: "xs-1", packet_version: "2" });
    expect(inProject("manifest.json")).toEqual({});
    expect((await house.cli([...args, "--firmware-version", "1.4.0"])).code).toBe(0);
    expect(inProject("manifest.json")).toEqual({ firmware_version: "1.4.0" });
  });

  it("are built by mcconfig where it is there: the boot count first, once for each secret", async () => {
    const out = house.path("xs-files-2");
    await house.cli(["provision", "--out", out, "--id", "xs-2"]);
    const bin = house.path("bin");
    mkdirSync(bin);
    const mcconfig = house.write(
      "bin/mcconfig",
      '#!/bin/sh\necho "$UPLOAD_PORT $*" >>"$MODDABLE/said"\n',
    );
    chmodSync(mcconfig, 0o755);
    const env = { PATH: `${bin}:${process.env.PATH}`, MODDABLE: bin };
    const project = house.path("xs-project-2");
    const port = "/dev/ttyX";
    const args = ["flash", port, "--target", "moddable", "--program", lamp, "--config", out];
    const flashXs = () => house.cli([...args, "--out", project, "--platform", "esp32/s3"], env);
    expect((await flashXs()).code).toBe(0);
    const added = JSON.parse(readFileSync(`${project}/agent.json`, "utf8"));
    house.write(
      "xs-project-2/agent.json",
      JSON.stringify({ config: { ...added.config, ssid: "hall" } }),
    );
    expect((await flashXs()).code).toBe(0);
    expect(readFileSync(`${bin}/said`, "utf8").split("\n")).toEqual([
      `${port} -m -p esp32/s3 provision=1`,
      `${port} -m -p esp32/s3`,
      "",
    ]);
    const { config } = JSON.parse(readFileSync(`${project}/agent.json`, "utf8"));
    expect([config.ssid, config.agent_id]).toEqual(["hall", "xs-2"]);
    expect(readFileSync(`${project}/blindrelay-project.json`, "utf8")).not.toContain(
      config.agent_token,
    );
    house.write("bin/mcconfig", "#!/bin/sh\nexit 3\n");
    const failed = await flashXs();
    expect([failed.code, failed.stderr]).toEqual([7, expect.stringContaining("ended with 3")]);
  });
});

const real = process.env.ESPRUINO_BIN;
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

  const echoes = async (id: string): Promise<Ended> => {
    const call = () => house.cli(["call", id, "echo", "[1]", "--timeout", "20"]);
    let called = await call();
    for (let tries = 0; called.code === 4 && tries < 20; tries++) called = await call();
    return called;
  };

  it("becomes an agent that answers, and stays one over a power cut", async () => {
    const { espruino, port } = await plugInReal();
    await wholeWay(port, "espruino-1");
    await espruino.end();
    await espruino.start();
    expect((await echoes("espruino-1")).stdout).toBe("[1]\n");
  });

  it("answers over its UART and a bridge, with its console on the port it was flashed by", async () => {
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
    // Its console is where it was: it is flashed again.
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
