/** Failures of a board: exit codes, messages, and what remains afterwards. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as wait } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { PASSWORD } from "../cli/processes.ts";
import { FAST, openWorkshop, PROGRAM } from "./workshop.ts";

const { house, lamp, plugIn, provision, flash, secretsOf } = openWorkshop();

describe("what goes wrong", () => {
  const agents = async (): Promise<string[]> => {
    const { stdout } = await house.cli(["agent", "list", "--json"]);
    return JSON.parse(stdout).items.map(({ agent_id }: { agent_id: string }) => agent_id);
  };

  it("unplugged while provisioning: 7, and no agent remains", async () => {
    const { double, cable, port } = await plugIn();
    double.storage.onWrite = (name) => {
      if (name === "boot.1") void cable.pull();
    };
    const { code, stderr } = await provision(port, "lost-1");
    expect([code, stderr]).toEqual([7, expect.stringContaining("disconnected")]);
    expect(await agents()).not.toContain("lost-1");
    expect(double.storage.read("blindrelay.json")).toBeUndefined();
  });

  it("interrupted while provisioning: the agent's secret before is back, and none remains", async () => {
    const { double, port } = await plugIn();
    await provision(port, "lost-3");
    const [, before] = await secretsOf("lost-3");
    for (const [agent, left] of [
      [["--agent", "lost-3"], "lost-3"],
      [["--id", "lost-4"], "lost-3"],
    ] as const) {
      const stuck = new Promise<void>((resolve) => {
        double.storage.onWrite = () => {
          double.stuck = true;
          resolve();
        };
      });
      const running = house.start(["provision", port, ...agent, ...FAST]);
      await stuck;
      const { code, stderr } = await running.stop("SIGINT");
      double.stuck = false;
      expect(stderr).toContain("interrupted: the board may have no agent now");
      expect([code, await secretsOf("lost-3")]).toEqual([130, [expect.anything(), before]]);
      expect((await agents()).filter((id) => /^lost-[34]$/.test(id))).toEqual([left]);
    }
  });

  it("interrupted while its agent is made: the board stays as it was", async () => {
    const { double, port } = await plugIn();
    await provision(port, "lost-5");
    const before = double.storage.read("blindrelay.json");
    const login = await fetch(`${house.url}/api/v1/auth/login`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ username: "ada", password: PASSWORD }),
    });
    const { user } = (await login.json()) as { user: { api_token: string } };
    const asked = Promise.withResolvers<void>();
    const interrupted = Promise.withResolvers<void>();
    const slow = createServer(async (request, response) => {
      const { authorization = "" } = request.headers;
      const headers = { authorization, "content-type": "application/json" };
      const { method, url } = request;
      const body = await text(request);
      const answer = await fetch(house.url + url, {
        method: method as string,
        ...(body === "" ? { headers: { authorization } } : { headers, body }),
      });
      if (method === "POST") {
        asked.resolve();
        await interrupted.promise;
      }
      // Time for the board to be written to.
      if (method === "DELETE") await wait(1_500);
      const type = answer.headers.get("content-type");
      response.writeHead(answer.status, type === null ? {} : { "content-type": type });
      response.end(await answer.text());
    }).listen(0, "127.0.0.1");
    await once(slow, "listening");
    const env = {
      BLINDRELAY_URL: `http://127.0.0.1:${(slow.address() as AddressInfo).port}`,
      BLINDRELAY_ACCOUNT_TOKEN: user.api_token,
    };
    const running = house.start(["provision", port, "--id", "lost-6", ...FAST], env);
    await asked.promise;
    running.child.kill("SIGINT");
    await wait(300);
    interrupted.resolve();
    const { code, stderr } = await running.ended;
    expect([code, stderr]).toEqual([130, expect.stringContaining("the board stays as it was")]);
    slow.close();
    expect(double.storage.read("blindrelay.json")).toBe(before);
    expect(await agents()).not.toContain("lost-6");
  });

  it("unplugged in the middle: 7, nothing starts, and the next time it works", async () => {
    const { double, cable, port } = await plugIn();
    await provision(port, "lost-2");
    expect((await flash(port)).code).toBe(0);
    expect(double.storage.list()).toContain(".bootcde");
    double.storage.onWrite = (name) => {
      if (name === "program") void cable.pull();
    };
    const longer = house.write("longer.js", `${PROGRAM}const table = "${"x".repeat(2_000)}";`);
    const { code, stderr } = await flash(port, [], longer);
    expect([code, stderr]).toEqual([7, expect.stringContaining("disconnected")]);
    expect(double.storage.list()).not.toContain(".bootcde");
    double.storage.onWrite = () => undefined;
    await cable.plug();
    expect((await flash(port, [], longer)).code).toBe(0);
  });

  it("a byte changed in transit is detected by reading back, and written again", async () => {
    const { double, port } = await plugIn();
    await provision(port, "spoilt");
    const { write } = double.storage;
    let spoilt = 0;
    double.storage.write = (name, data, offset, total) => {
      const spoils = name === "program" && spoilt++ === 0;
      return write.call(
        double.storage,
        name,
        spoils ? String(data).replace("lamp", "lump").replace("on", "no") : data,
        offset,
        total,
      );
    };
    expect((await flash(port)).code).toBe(0);
    expect(double.storage.written.filter((name) => name === "program")).toHaveLength(2);
  });

  it("reset in the middle of a file, which stays in part: written again", async () => {
    const { double, port } = await plugIn();
    await provision(port, "reset");
    const { write } = double.storage;
    let resets = 0;
    double.storage.write = (name, data, offset = 0, total) => {
      if (name !== "blindrelay" || offset === 0 || resets++ > 0)
        return write.call(double.storage, name, data, offset, total);
      write.call(double.storage, name, "\0\0", offset, total);
      double.restart();
      throw new Error("reset");
    };
    expect((await flash(port)).code).toBe(0);
    expect(double.storage.written.filter((name) => name === "blindrelay")).toHaveLength(2);
  });

  it("no space: 7, with the numbers, and nothing is changed", async () => {
    const { double, port } = await plugIn({ storageBytes: 16_384 });
    await provision(port, "small");
    const { code, stderr } = await flash(port);
    expect([code, stderr]).toEqual([7, expect.stringMatching(/not enough space: \d+ bytes/)]);
    expect(double.storage.list()).not.toContain("blindrelay");
  });

  it("no SHA-256: 7 for provision, unless slow crypto is allowed", async () => {
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
    const modules = house.write(
      "modules.js",
      'const net = require("net"); const dht = require("DHT22"); export default () => net === dht;',
    );
    expect((await flash(port, [], modules)).stderr).toContain(
      "requires modules that this board does not have: DHT22: specify --modules DIR",
    );
    expect(double.storage.list()).not.toContain("program");
  });

  it("no secret to verify it with: 2 before anything is changed, unless verification is off", async () => {
    const { double, port } = await plugIn();
    await provision(port, "unproven");
    const args = ["--profile", "stranger", "flash", port, "--program", lamp, ...FAST];
    const { code, stderr } = await house.cli(args);
    expect([code, stderr]).toEqual([2, expect.stringContaining("there is no profile")]);
    expect(double.storage.list()).not.toContain("blindrelay");
    expect((await house.cli([...args, "--no-check"])).code).toBe(0);
  });

  it("a program that throws at its start: 7, with the board's own message", async () => {
    const { port } = await plugIn();
    await provision(port, "thrower");
    const thrower = house.write(
      "thrower.js",
      'export default () => { throw new Error("no lamp"); };',
    );
    const { code, stderr } = await flash(port, [], thrower);
    expect([code, stderr]).toEqual([7, expect.stringContaining("no lamp")]);
  });

  it("a program that leaves too little memory: 7, with the variables", async () => {
    const { port } = await plugIn();
    await provision(port, "starved");
    const starved = house.write(
      "starved.js",
      "export default () => { process.memory = () => ({ free: 123, total: 2630, blocksize: 13 }); };",
    );
    const { code, stderr } = await flash(port, ["--timeout", "3"], starved);
    expect([code, stderr]).toEqual([
      7,
      expect.stringContaining("the program leaves 123 variables, about 400 are needed"),
    ]);
  });

  it("a failed assertion of Espruino: 7, and which build to use", async () => {
    const { port } = await plugIn();
    await provision(port, "asserting");
    const asserting = house.write(
      "asserting.js",
      'export default () => { console.log("ASSERT(jsvHasChildren(obj)) FAILED AT src/jsvar.c:3324"); };',
    );
    const { code, stderr } = await flash(port, [], asserting);
    expect([code, stderr]).toEqual([7, expect.stringMatching(/jsvar\.c:3324.*RELEASE=1/)]);
  });

  it("a start file is recognized as its own at the next version, and reported as foreign otherwise", async () => {
    const { double, port } = await plugIn();
    await provision(port, "upgraded");
    const upgrade = (version: string) => flash(port, ["--firmware-version", version]);
    expect((await upgrade("1.0.0")).code).toBe(0);
    expect((await upgrade("1.0.1")).stderr).not.toContain("blindrelay did not write");
    double.storage.write(".bootcde", "LED1.set()");
    expect((await upgrade("1.0.1")).stderr).toContain("blindrelay did not write");
  });
});
