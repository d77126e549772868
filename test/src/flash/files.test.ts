/** The commands around flashing: monitor, devices, and files instead of a board. */
import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import type { AddressInfo } from "node:net";
import { createServer } from "node:tls";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { makeCertificates, noOpenssl } from "@blindrelay/relay-server/testing";
import { describe, expect, it } from "vitest";
import type { Environment } from "../cli/processes.ts";
import { FAST, openWorkshop } from "./workshop.ts";

const { house, lamp, plugIn, secretsOf } = openWorkshop();

describe("monitor and devices", () => {
  it("shows the board's output, sends input to it, and reconnects when the port is back", async () => {
    const { double, cable, port } = await plugIn();
    const monitor = house.start(["monitor", port, "--json", ...FAST]);
    const said = setInterval(() => double.print("warm"), 50);
    expect(await monitor.json()).toEqual({ line: "warm" });
    clearInterval(said);
    await cable.pull();
    await cable.plug();
    const again = setInterval(() => double.print("warmer"), 50);
    let line = "warm";
    while (line !== "warmer") line = (await monitor.json<{ line: string }>()).line;
    clearInterval(again);
    const { code, stderr } = await monitor.stop("SIGINT");
    expect([code, stderr]).toEqual([0, expect.stringContaining("is back")]);
  });

  it("sends input to the board, and exits with 7 if it may not wait", async () => {
    const { double, cable, port } = await plugIn();
    const typed = house.start(
      ["monitor", port, "--no-reconnect", "--json", ...FAST],
      {},
      "print(6*7)\n",
    );
    let line = "";
    while (line !== "42") line = (await typed.json<{ line: string }>()).line;
    await cable.pull();
    expect((await typed.ended).code).toBe(7);
    expect(double.lost).toBe(0);
  });

  it("lists devices that answer, without disturbing them", async () => {
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

describe("files instead of a board", () => {
  it("are for one board, once", async () => {
    const out = house.path("board-files");
    const made = await house.cli(["provision", "--out", out, "--id", "filed", "--json"]);
    expect([made.code, JSON.parse(made.stdout).packet_version]).toEqual([0, "2"]);
    const config = JSON.parse(readFileSync(`${out}/blindrelay.json`, "utf8"));
    expect([config.relay_token, config.agent_token]).toEqual(await secretsOf("filed"));
    expect(made.stderr).toContain("if its storage is ever erased, it needs a new folder");
    expect(readdirSync(out).sort()).toEqual(["blindrelay.json", "boot.marker"]);
    expect(statSync(`${out}/blindrelay.json`).mode & 0o777).toBe(0o600);
    const again = await house.cli(["provision", "--out", out, "--id", "filed-2"]);
    expect([again.code, again.stderr]).toEqual([7, expect.stringContaining("empty folder")]);
  });

  it("make a project for Moddable with instructions to build it", async () => {
    const out = house.path("xs-files");
    const key = house.path("xs.key");
    const as = ["--target", "moddable", "--out", out];
    const said = await house.cli(["provision", ...as, "--id", "xs-1", "--push-key", key, "--json"]);
    expect(JSON.parse(said.stdout).packet_version).toBe("4");
    expect(readdirSync(out)).toEqual(["blindrelay.json"]);
    const { push_key: pushKey } = JSON.parse(readFileSync(`${out}/blindrelay.json`, "utf8"));
    expect(readFileSync(key, "utf8")).toBe(`${pushKey}\n`);
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
    expect([code, stderr]).toEqual([0, expect.stringContaining("mcconfig is not installed")]);
    expect(stderr).toContain("its push key guards its secret only");
    const { files, commands } = JSON.parse(stdout);
    for (const file of files) expect(existsSync(`${project}/${file}`)).toBe(true);
    expect(commands[0]).toMatch(/^mcconfig -m -p esp32 provision=1 seed=\$\(openssl rand /);
    const { modules } = JSON.parse(readFileSync(`${project}/blindrelay/manifest.json`, "utf8"));
    for (const path of Object.values<string>(modules)) {
      if (path.startsWith(".")) expect(existsSync(`${project}/blindrelay/${path}.js`)).toBe(true);
    }
    const inProject = (name: string) =>
      JSON.parse(readFileSync(`${project}/${name}`, "utf8")).config;
    const config = inProject("agent.json");
    expect(config).toMatchObject({ agent_id: "xs-1", packet_version: "4", push_key: pushKey });
    const device = nodeX25519.pair(Buffer.from(config.device_key, "base64url"));
    const { keyring } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
    expect(keyring["xs-1"].device_key).toBe(Buffer.from(device.publicKey()).toString("base64url"));
    expect(inProject("manifest.json")).toEqual({});
    expect((await house.cli([...args, "--firmware-version", "1.4.0"])).code).toBe(0);
    expect(inProject("manifest.json")).toEqual({ firmware_version: "1.4.0" });
  });

  it.skipIf(noOpenssl)(
    "give Moddable the authority of the certificate of a relay at wss",
    async () => {
      const { ca, cert, key } = makeCertificates(house.path("."), "nobody");
      const tls = createServer({ cert: readFileSync(cert), key: readFileSync(key) });
      tls.on("tlsClientError", () => undefined);
      tls.listen(0, "127.0.0.1");
      await once(tls, "listening");
      try {
        const url = `wss://127.0.0.1:${(tls.address() as AddressInfo).port}/wss`;
        const out = house.path("wss-files");
        await house.cli(["provision", "--out", out, "--id", "wss-lamp", "--relay-url", url]);
        const project = house.path("wss-project");
        const args = ["flash", "--target", "moddable", "--program", lamp, "--config", out];
        const flash = (env: Environment) => house.cli([...args, "--out", project], env);
        const refused = await flash({});
        expect([refused.code, refused.stderr]).toEqual([
          4,
          expect.stringMatching(/certificate authority cannot be found.*NODE_EXTRA_CA_CERTS=FILE/),
        ]);
        expect(await flash({ NODE_EXTRA_CA_CERTS: ca })).toMatchObject({ code: 0 });
        const file = (name: string) => readFileSync(`${project}/${name}`, "utf8");
        const authority = new X509Certificate(readFileSync(ca)).raw.toString("base64");
        expect(JSON.parse(file("agent.json")).config).toMatchObject({
          relay: url,
          relay_ca: authority,
        });
        expect(file("manifest.json")).toContain("tlssocket/manifest.json");
        expect(file("network.js")).toContain("config.relay_ca");
      } finally {
        tls.close();
      }
    },
  );

  it("are built by mcconfig if it is installed: the boot count first, once for each secret", async () => {
    const out = house.path("xs-files-2");
    await house.cli(["provision", "--target", "moddable", "--out", out, "--id", "xs-2"]);
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
    const [, seed] = / seed=([\w-]{43})\n/.exec(readFileSync(`${bin}/said`, "utf8")) ?? [];
    expect(readFileSync(`${bin}/said`, "utf8").split("\n")).toEqual([
      `${port} -m -p esp32/s3 provision=1 seed=${seed}`,
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
    // Whoever has it can open what was recorded.
    for (const name of readdirSync(project)) {
      const path = `${project}/${name}`;
      if (statSync(path).isFile()) expect(readFileSync(path, "utf8")).not.toContain(seed);
    }
  });

  it("keep in a Moddable project what its user has added, and nothing of another agent", async () => {
    const project = house.path("xs-project-4");
    const flashXs = (id: string) => {
      const args = ["flash", "--target", "moddable", "--program", lamp, "--out", project];
      return house.cli([...args, "--config", house.path(id)]);
    };
    const key = ["--push-key", house.path("xs-4.key")];
    for (const [id, more] of [
      ["xs-4", key],
      ["xs-5", ["--packet-version", "2"]],
    ] as const) {
      const as = ["--target", "moddable", "--out", house.path(id), "--id", id];
      expect((await house.cli(["provision", ...as, ...more])).code).toBe(0);
    }
    expect((await flashXs("xs-4")).code).toBe(0);
    const path = `${project}/agent.json`;
    const { config } = JSON.parse(readFileSync(path, "utf8"));
    expect(config).toMatchObject({ device_key: expect.anything(), push_key: expect.anything() });
    const typed = `{"config": {"ssid": "hall", "rekey": false,}}`;
    house.write("xs-project-4/agent.json", typed);
    const refused = await flashXs("xs-4");
    expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("agent.json is")]);
    expect(readFileSync(path, "utf8")).toBe(typed);
    const added = { ...config, ssid: "hall", rekey: false };
    house.write("xs-project-4/agent.json", JSON.stringify({ config: added }));
    const now = () => JSON.parse(readFileSync(path, "utf8")).config;
    expect([(await flashXs("xs-4")).code, now()]).toEqual([0, added]);
    expect((await flashXs("xs-5")).code).toBe(0);
    expect(now()).toMatchObject({ agent_id: "xs-5", ssid: "hall" });
    expect(Object.keys(now())).not.toContain("device_key");
    expect(Object.keys(now())).not.toContain("push_key");
  });

  it("report a boot count as written only after it was read back, from its own folder", async () => {
    const out = house.path("xs-files-3");
    await house.cli(["provision", "--out", out, "--id", "xs-3"]);
    const bin = house.path("bin-3");
    mkdirSync(bin);
    chmodSync(house.write("bin-3/mcconfig", "#!/bin/sh\n"), 0o755);
    const env = { PATH: `${bin}:${process.env.PATH}`, MODDABLE: bin };
    const project = house.path("xs-project-3");
    const args = ["flash", "--target", "moddable", "--program", lamp, "--config", out];
    const flashXs = () => house.cli([...args, "--out", project, "--platform", "lin"], env);
    const built = await flashXs();
    expect([built.code, built.stderr]).toEqual([0, expect.stringContaining("start it once")]);
    expect(built.stderr).not.toContain("is written");
    const { config } = JSON.parse(readFileSync(`${project}/manifest.json`, "utf8"));
    expect(config.file.root).toBe(`${project}/preferences/`);
    const early = await flashXs();
    expect([early.code, early.stderr]).toEqual([7, expect.stringContaining("no boot count in")]);
    house.write("xs-project-3/preferences/modpreferences.json", '{"blindrelay":{"boot.0.0":""}}');
    const done = await flashXs();
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining("read back from")]);
  });
});
