/**
 * The command as users run it: real processes, a real relay, exit codes, standard output and
 * standard error.
 */
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { makeToken } from "@blindrelay/protocol";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Added, CLI, House, PASSWORD, type Running } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("echo", (params) => params);
  agent.handle("later", async () => { await null; return "done"; });
  agent.handle("nothing", () => null);
  agent.handle("fail", () => { throw new Error("stuck"); });
  agent.handle("never", () => new Promise(() => {}));
  agent.handle("forge", () => agent.emit("x\\npump-8 is offline", { a: "\\u009b2J" }));
  agent.every(50, () => agent.emit("tick", { level: 4 }));
};
`;

const house = new House();
let pump: Added;
let program: string;
let running: Running;

const add = async (id: string): Promise<Added> =>
  JSON.parse(
    (await house.cli(["agent", "add", `The ${id}`, "--id", id, "--json", "--env"])).stdout,
  );

const environmentOf = (agent: Added) => ({
  BLINDRELAY_URL: house.url,
  BLINDRELAY_AGENT_ID: agent.agent_id,
  BLINDRELAY_RELAY_TOKEN: agent.api_token,
  BLINDRELAY_AGENT_TOKEN: agent.agent_token,
  BLINDRELAY_STATE_DIR: house.path(`state-${agent.agent_id}`),
});

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  const { code, stderr } = await house.cli(login, {}, `${PASSWORD}\n`);
  expect([code, stderr]).toEqual([0, ""]);
  pump = await add("pump-7");
  program = house.write("pump.mjs", PROGRAM);
  running = house.start(["agent", "run", program, "--json"], environmentOf(pump));
  expect(await running.json()).toEqual({ event: "online", agent_id: "pump-7" });
});

afterAll(() => house.close());

describe("call", () => {
  it("prints the bare result", async () => {
    const calls = await Promise.all([
      house.cli(["call", "pump-7", "echo", '{"percent": 40, "text": "höchst"}']),
      house.cli(["call", "pump-7", "nothing", "--json"]),
      house.cli(["call", "pump-7", "later", "--idempotent"]),
      house.cli(["call", "pump-7", "echo", "-"], {}, "[1, 2]"),
      house.cli(["call", "pump-7", "system.ping"]),
    ]);
    expect(calls).toEqual(
      ['{"percent":40,"text":"höchst"}', "null", '"done"', "[1,2]", "{}"].map((line) => ({
        code: 0,
        stdout: `${line}\n`,
        stderr: "",
      })),
    );
  });

  it("needs no profile if the environment has all settings", async () => {
    const { account_token } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
    const { code, stdout } = await house.cli(["call", "pump-7", "echo", "[]"], {
      BLINDRELAY_CONFIG_DIR: house.path("nobody"),
      BLINDRELAY_URL: `${house.url}/`,
      BLINDRELAY_ACCOUNT_TOKEN: account_token,
      BLINDRELAY_AGENT_TOKEN: pump.agent_token,
    });
    expect([code, stdout]).toEqual([0, "[]\n"]);
  });

  it("exits with 3 if the agent answered with an error, and prints it as JSON", async () => {
    const failed = await house.cli(["call", "pump-7", "fail"]);
    expect([failed.code, failed.stdout]).toEqual([3, ""]);
    expect(JSON.parse(failed.stderr)).toMatchObject({ code: -32000, message: expect.any(String) });
    const unknown = await house.cli(["call", "pump-7", "no.such"]);
    expect([unknown.code, JSON.parse(unknown.stderr).code]).toEqual([3, -32601]);
  });

  it("exits with 4 if the agent is offline or the relay unreachable", async () => {
    await add("offline-1");
    const offline = await house.cli(["call", "offline-1", "echo"]);
    expect([offline.code, offline.stdout]).toEqual([4, ""]);
    const away = await house.cli(["call", "pump-7", "echo"], {
      BLINDRELAY_URL: `http://127.0.0.1:${await freePort()}`,
      BLINDRELAY_ACCOUNT_TOKEN: (await house.cli(["auth", "token"])).stdout,
    });
    expect([away.code, away.stdout]).toEqual([4, ""]);
  });

  it("exits with 5 if the agent is another user's or the credentials are refused", async () => {
    const foreign = await house.cli(["call", "somebody-elses", "echo"], {
      BLINDRELAY_AGENT_TOKEN: pump.agent_token,
    });
    const refused = await house.cli(["call", "pump-7", "echo"], {
      BLINDRELAY_ACCOUNT_TOKEN: makeToken("account", randomBytes(32)),
    });
    const misplaced = await house.cli(["call", "pump-7", "echo"], {
      BLINDRELAY_ACCOUNT_TOKEN: pump.agent_token,
    });
    expect([foreign.code, refused.code, misplaced.code]).toEqual([5, 5, 5]);
    expect(misplaced.stderr).toMatch(/account token.*end-to-end secret/);
    expect(misplaced.stderr).not.toContain(pump.agent_token);
  });

  it("exits with 6 if no verified answer came in time", async () => {
    const [wrong, never] = await Promise.all([
      house.cli(["call", "pump-7", "echo", "--timeout", "8"], {
        BLINDRELAY_AGENT_TOKEN: makeToken("e2e", randomBytes(32)),
      }),
      house.cli(["call", "pump-7", "never", "--timeout", "8"]),
    ]);
    expect([wrong.code, never.code]).toEqual([6, 6]);
    expect(wrong.stderr).toContain("agent_token");
  });

  it("exits with 2 on wrong usage", async () => {
    const uses = [
      ["call", "pump-7", "echo", "{"],
      ["call", "unknown-secret", "echo"],
      ["no-such-command"],
    ];
    const ends = await Promise.all(uses.map((args) => house.cli(args)));
    expect(ends.map(({ code }) => code)).toEqual(uses.map(() => 2));
    expect(ends.every(({ stdout, stderr }) => stdout === "" && stderr !== "")).toBe(true);
  });
});

describe("events", () => {
  it("prints one JSON document per line", async () => {
    const { code, stdout } = await house.cli(["events", "pump-7", "--json", "--count", "2"]);
    const lines = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(code).toBe(0);
    const at = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(lines).toContainEqual({ kind: "presence", agent_id: "pump-7", status: "online", at });
    const tick = { kind: "event", agent_id: "pump-7", event: "tick", data: { level: 4 }, at };
    expect(lines.filter(({ kind }) => kind === "event")).toEqual([tick, tick]);
  });

  it("are one line each, whatever their name", async () => {
    const events = house.start(["events", "pump-7"]);
    await events.line();
    await house.cli(["call", "pump-7", "forge"]);
    let line = "";
    while (!line.includes("x")) line = await events.line();
    const [at = "", ...said] = line.split(" ");
    expect(Math.abs(Date.parse(at) - Date.now())).toBeLessThan(60_000);
    expect(said.join(" ")).toBe('pump-7 x\ufffdpump-8 is offline {"a":"\\u009b2J"}');
    expect((await events.stop("SIGINT")).code).toBe(0);
  });

  it("listens to all in the keyring, and exits with 0 on SIGINT", async () => {
    const events = house.start(["events", "--json"]);
    for (let seen = ""; seen !== "event"; seen = (await events.json<{ kind: string }>()).kind);
    expect((await events.stop("SIGINT")).code).toBe(0);
  });
});

describe("agents", () => {
  it("are listed, shown, exported, rotated and removed", async () => {
    const tank = await add("tank-1");
    const list = JSON.parse((await house.cli(["agent", "list", "--json"])).stdout);
    expect(list.items).toEqual(
      expect.arrayContaining([
        expect.objectContaining({ agent_id: "pump-7", online: true }),
        expect.objectContaining({ agent_id: "tank-1", online: false, name: "The tank-1" }),
      ]),
    );
    expect((await house.cli(["agent", "list"])).stdout).toMatch(/^AGENT {2,}STATUS/);
    const { stdout: shown } = await house.cli(["agent", "show", "tank-1"]);
    expect(shown).toMatch(/^name: +The tank-1$/m);
    expect(shown).toMatch(/^last seen: +never$/m);
    expect(shown).not.toContain("null");
    const exported = JSON.parse((await house.cli(["agent", "export", "tank-1", "--json"])).stdout);
    expect(exported).toMatchObject({
      api_token: tank.api_token,
      agent_token: tank.agent_token,
      packet_version: "1",
    });
    const rotated = JSON.parse((await house.cli(["agent", "rotate", "tank-1", "--json"])).stdout);
    expect(rotated.api_token).not.toBe(tank.api_token);
    const both = await house.cli(["agent", "rotate", "tank-1", "--secret", "--json"]);
    const after = JSON.parse((await house.cli(["agent", "export", "tank-1", "--json"])).stdout);
    expect([both.code, after.api_token]).toEqual([0, JSON.parse(both.stdout).api_token]);
    expect(after.api_token).not.toBe(rotated.api_token);
    expect(after.agent_token).toMatch(/^e2e_/);
    expect(after.agent_token).not.toBe(tank.agent_token);
    expect(both.stdout + both.stderr).not.toContain("e2e_");
    expect((await house.cli(["agent", "rm", "tank-1"])).code).toBe(2);
    expect((await house.cli(["agent", "rm", "tank-1", "--yes"])).code).toBe(0);
    const gone = await house.cli(["agent", "show", "tank-1"]);
    expect([gone.code, gone.stdout]).toEqual([5, ""]);
    const taken = await house.cli(["agent", "add", "x", "--id", "pump-7"]);
    expect([taken.code, taken.stdout]).toEqual([5, ""]);
  });

  it("are added without printing their secrets, unless requested", async () => {
    const json = await house.cli(["agent", "add", "quiet", "--id", "quiet-1", "--json"]);
    const plain = await house.cli(["agent", "add", "quiet", "--id", "quiet-2"]);
    expect([plain.code, plain.stdout, plain.stderr]).toEqual([0, "quiet-2\n", ""]);
    expect(JSON.parse(json.stdout)).toMatchObject({ agent_id: "quiet-1", packet_version: "1" });
    expect(json.stdout + plain.stdout).not.toMatch(/(agt|e2e)_/);
    const { keyring } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
    const exported = await house.cli(["agent", "export", "quiet-2", "--env"]);
    expect(exported.stdout).toContain(`BLINDRELAY_AGENT_TOKEN=${keyring["quiet-2"].agent_token}`);
    expect(exported.stdout).toMatch(/^BLINDRELAY_RELAY_TOKEN=agt_/m);
    const shown = await house.cli(["agent", "add", "loud", "--id", "loud-1", "--env"]);
    expect(shown.stdout).toMatch(/^BLINDRELAY_AGENT_TOKEN=e2e_/m);
  });

  it("are exported in each firmware's format, and as lines that the command itself accepts", async () => {
    const { agent_token, api_token } = await add("made-1");
    const said = async (...format: string[]) =>
      (await house.cli(["agent", "export", "made-1", ...format])).stdout;
    const lines = await said();
    expect(lines.trim().split("\n")).toEqual([
      `BLINDRELAY_URL=${house.url}`,
      "BLINDRELAY_AGENT_ID=made-1",
      `BLINDRELAY_RELAY_TOKEN=${api_token}`,
      `BLINDRELAY_AGENT_TOKEN=${agent_token}`,
      "BLINDRELAY_PACKET_VERSION=1",
    ]);
    expect(await said("--env")).toBe(lines);
    const url = `${house.url.replace("http", "ws")}/wss`;
    const module: { exports?: unknown } = {};
    runInNewContext(await said("--format", "espruino"), { module });
    const board = { url, agent_id: "made-1", relay_token: api_token, agent_token, v: "1" };
    expect(module.exports).toEqual(board);
    const manifest = JSON.parse(await said("--format", "moddable"));
    const identity = { url, agentId: "made-1", relayToken: api_token, agentToken: agent_token };
    expect(manifest).toEqual({ config: { blindrelay: { ...identity, packetVersion: "1" } } });
    expect(JSON.parse(await said("--format", "json"))).toMatchObject({ api_token, agent_token });
    for (const flags of ["--env --json", "--json --format moddable", "--format yaml"]) {
      expect((await house.cli(["agent", "export", "made-1", ...flags.split(" ")])).code).toBe(2);
    }
  });

  it("are not added if the secret could not be stored", async () => {
    const { account_token } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
    const env = {
      BLINDRELAY_CONFIG_DIR: house.path("nobody"),
      BLINDRELAY_URL: house.url,
      BLINDRELAY_ACCOUNT_TOKEN: account_token,
    };
    expect((await house.cli(["agent", "add", "x", "--id", "kept-1"], env)).code).toBe(2);
    expect((await house.cli(["agent", "show", "kept-1"])).code).toBe(5);
    expect((await house.cli(["agent", "add", "x", "--id", "kept-1", "--env"], env)).code).toBe(0);
  });

  it("lose no secret when many are added at once", async () => {
    const ids = ["batch-1", "batch-2", "batch-3", "batch-4", "batch-5"];
    await Promise.all(ids.map((id) => house.cli(["agent", "add", "one of many", "--id", id])));
    const { keyring } = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
    expect(Object.keys(keyring)).toEqual(expect.arrayContaining([...ids, "pump-7"]));
    await Promise.all(ids.map((id) => house.cli(["agent", "rm", id, "--yes"])));
    const after = JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
    expect(Object.keys(after.keyring).filter((id) => ids.includes(id))).toEqual([]);
  });

  it("are stored with their secrets if nobody else can read them", () => {
    expect(statSync(house.path("config/default.json")).mode & 0o777).toBe(0o600);
    expect(statSync(house.path("config")).mode & 0o777).toBe(0o700);
  });
});

describe("login", () => {
  it("refuses a wrong password with 5 and does not change the profile", async () => {
    const login = ["--profile", "other", "login", "--url", house.url, "--username", "ada"];
    const { code, stdout, stderr } = await house.cli([...login, "--password-stdin"], {}, "wrong");
    expect([code, stdout]).toEqual([5, ""]);
    expect(stderr).not.toContain("wrong\n");
    expect(() => statSync(house.path("config/other.json"))).toThrow();
  });

  it("prints what to type if it cannot prompt", async () => {
    const login = ["--profile", "other", "login", "--url", house.url];
    const asked = await Promise.all([
      house.cli(login),
      house.cli([...login, "--password-stdin"], {}, PASSWORD),
    ]);
    for (const { code, stderr } of asked) {
      expect([code, stderr]).toEqual([
        2,
        expect.stringContaining("blindrelay login --username NAME --password-stdin"),
      ]);
    }
  });
});

it("exits with 0 if its reader left, and with 70 if its answer could not be written", async () => {
  const cli = `'${process.execPath}' '${CLI}'`;
  const shell = (line: string) => spawnSync("bash", ["-c", line], { encoding: "utf8" });
  const left = shell(`${cli} bridge --schema config | true; echo "\${PIPESTATUS[0]}"`);
  expect([left.stdout, left.stderr]).toEqual(["0\n", ""]);
  const full = shell(`${cli} bridge --schema config > /dev/full`);
  expect([full.status, full.stderr]).toEqual([70, expect.stringContaining("ENOSPC")]);
});

it("leaves no part of a key that could not be written", async () => {
  const made = house.path("unwritten");
  mkdirSync(made);
  const word = (text: string) => `'${text}'`;
  const runsFull = (...args: string[]) => {
    const line = [process.execPath, CLI, ...args].map(word).join(" ");
    // The instruments write files too.
    const full = `unset NODE_OPTIONS; ulimit -f 0; exec ${line}`;
    return spawnSync("sh", ["-c", full], { encoding: "utf8", env: environmentOf(pump) });
  };
  for (const args of [
    ["release", "keygen", join(made, "release.pem")],
    ["agent", "run", program, "--push-key", join(made, "push.key")],
  ]) {
    const { status, stderr } = runsFull(...args);
    expect([status, stderr]).toEqual([2, expect.stringContaining("EFBIG")]);
  }
  expect(readdirSync(made)).toEqual([]);
});

it("a state folder that cannot be made is reported with its reason", async () => {
  const env = { ...environmentOf(pump), BLINDRELAY_STATE_DIR: join(program, "state") };
  const { code, stderr } = await house.cli(["agent", "run", program], env);
  expect([code, stderr]).toEqual([7, expect.stringMatching(/cannot be made: .*: ENOTDIR: /)]);
  expect(stderr).not.toContain("--provision");
});

describe("a server that is not a relay", () => {
  it("gets no password", async () => {
    const asked: (string | undefined)[] = [];
    const other = createHttpServer((request, response) => {
      asked.push(request.url);
      response.setHeader("content-type", "application/json").end("{}");
    });
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    const { port } = other.address() as AddressInfo;
    const flags = ["--url", `http://127.0.0.1:${port}`, "--username", "ada", "--password-stdin"];
    const { code, stderr } = await house.cli(["login", ...flags], {}, PASSWORD);
    other.close();
    expect([code, stderr]).toEqual([4, expect.stringContaining("answered unlike a relay")]);
    expect(asked).toEqual(["/api/v1/auth/config"]);
  });
});

describe("agent run", () => {
  it("takes everything from the profile, and the state folder beside it", async () => {
    await house.cli(["agent", "add", "Home", "--id", "home-1"]);
    const agent = house.start(["agent", "run", program, "--agent", "home-1", "--json"]);
    expect(await agent.json()).toEqual({ event: "online", agent_id: "home-1" });
    expect((await house.cli(["call", "home-1", "echo", "[1]"])).stdout).toBe("[1]\n");
    expect((await agent.stop()).code).toBe(0);
    expect(statSync(house.path("config/state/default/home-1")).mode & 0o777).toBe(0o700);
    expect((await house.cli(["agent", "run", program, "--agent", "no-such"])).code).toBe(2);
  });

  it("exits with 7 if the state folder prevents a start", async () => {
    const foreign = house.path("foreign");
    mkdirSync(foreign);
    writeFileSync(join(foreign, "somebody's"), "file");
    const second = await house.cli(["agent", "run", program], {
      ...environmentOf(pump),
      BLINDRELAY_STATE_DIR: foreign,
    });
    const locked = await house.cli(["agent", "run", program], environmentOf(pump));
    expect([second.code, locked.code]).toEqual([7, 7]);
  });

  it("accepts a folder of another secret only with --provision and a new one", async () => {
    const agent = await add("mover-1");
    const env = environmentOf(agent);
    const first = house.start(["agent", "run", program, "--json"], env);
    await first.json();
    expect((await first.stop()).code).toBe(0);
    const other = { ...env, BLINDRELAY_AGENT_TOKEN: makeToken("e2e", randomBytes(32)) };
    const refused = await house.cli(["agent", "run", program], other);
    const reused = await house.cli(["agent", "run", program, "--provision"], env);
    expect([refused.code, reused.code]).toEqual([7, 7]);
    const moved = house.start(["agent", "run", program, "--json", "--provision"], other);
    expect(await moved.json()).toEqual({ event: "online", agent_id: "mover-1" });
    expect((await moved.stop("SIGINT")).code).toBe(0);
  });

  it("exits with 5 if the relay refuses its credentials", async () => {
    const agent = await add("refused-1");
    const unknown = await house.cli(["agent", "run", program], {
      ...environmentOf(agent),
      BLINDRELAY_RELAY_TOKEN: makeToken("agent", randomBytes(32)),
    });
    const misplaced = await house.cli(["agent", "run", program], {
      ...environmentOf(agent),
      BLINDRELAY_RELAY_TOKEN: agent.agent_token,
    });
    expect([unknown.code, misplaced.code]).toEqual([5, 5]);
    expect(unknown.stdout + misplaced.stdout).toBe("");
  });

  it("exits with 2 if the program or a variable is missing", async () => {
    const agent = { ...environmentOf(pump), BLINDRELAY_STATE_DIR: house.path("unused") };
    const { BLINDRELAY_AGENT_ID: _, ...nameless } = agent;
    const ends = await Promise.all([
      house.cli(["agent", "run", "no-such.mjs"], agent),
      house.cli(["agent", "run", house.write("empty.mjs", "export const x = 1;")], agent),
      house.cli(["agent", "run", house.write("broken.mjs", "export default (")], agent),
      house.cli(
        ["agent", "run", house.write("throws.mjs", "export default () => { throw 1; };")],
        agent,
      ),
      house.cli(["agent", "run", program], nameless),
    ]);
    expect(ends.map(({ code }) => code)).toEqual([2, 2, 2, 2, 2]);
  });

  it("reports where the program failed outside of its handlers, and continues", async () => {
    const wild = house.write(
      "wild.mjs",
      `export default (agent) => {
  agent.handle("echo", (params) => params);
  agent.handle("broken", () => { throw new Error("inside"); });
  agent.handle("throw", () => { setTimeout(() => { throw new Error("in a timer"); }); });
  agent.handle("reject", () => { Promise.reject(new Error("in a promise")); });
  agent.handle("reject-text", () => { Promise.reject("a text"); });
};`,
    );
    await add("wild-1");
    const agent = house.start(["agent", "run", wild, "--agent", "wild-1", "--json"]);
    await agent.json();
    for (const method of ["throw", "reject", "reject-text"]) {
      expect((await house.cli(["call", "wild-1", method])).code).toBe(0);
    }
    expect((await house.cli(["call", "wild-1", "broken"])).code).toBe(3);
    expect((await house.cli(["call", "wild-1", "echo", "[1]"])).stdout).toBe("[1]\n");
    const logs = (await house.cli(["logs", "wild-1", "--lines", "20"])).stdout;
    expect(logs).toMatch(/^start 2; nothing is known of an earlier start/);
    for (const text of ["in a timer", "in a promise", "a text", "inside"]) {
      expect(logs).toMatch(new RegExp(`^ +\\d+\\.\\d{3} error .*${text}`, "m"));
    }
    const { code, stderr } = await agent.stop();
    expect(code).toBe(0);
    const outside = "the device program failed outside of its handlers; the agent continues";
    for (const place of [/4:\d+: Error: in a timer/, /5:49: Error: in a promise/]) {
      expect(stderr).toMatch(new RegExp(`${outside}: ${wild}:${place.source}\\n +at `));
    }
    expect(stderr).toContain("a text");
    expect(stderr).toMatch(
      /the handler of "broken" failed .*inside.*\n +at .*wild\.mjs:3:.*\n(?! )/,
    );
    expect(stderr).not.toContain("of ours");
  });

  it("reports file, line and column of a program that cannot be read, and what boards do not run", async () => {
    const env = { ...environmentOf(pump), BLINDRELAY_STATE_DIR: house.path("unread") };
    const broken = house.write("bracket.mjs", "export default (agent) => {\n  (;\n};");
    const read = await house.cli(["agent", "run", broken], env);
    expect(read).toMatchObject({ code: 2, stderr: expect.stringContaining(`${broken}:2:4: `) });
    const early = house.write("early.mjs", "export default (agent) => {\n  agent?.x.y();\n};");
    const started = await house.cli(["agent", "run", early], env);
    expect(started.code).toBe(2);
    expect(started.stderr).toContain(`${early}:2:11: TypeError`);
    expect(started.stderr).toContain(`boards do not run ${early} as written: 1 place`);
    const checked = await house.cli(["check", early]);
    expect(checked).toMatchObject({ code: 1, stdout: expect.stringContaining(`${early}:2:3: `) });
    expect((await house.cli(["check", house.path("no-such.js")])).code).toBe(2);
    const typed = house.write("typed.ts", "let a: number;\n\n  enum A { B }\n");
    expect((await house.cli(["check", typed])).stderr).toContain(`${typed}:3:3: cannot be read`);
    const good = house.write(
      "good.mjs",
      "export default (agent) => { agent.handle('a', () => 1); };",
    );
    const roomy = await house.cli(["check", good, "--board", "puck.js"]);
    expect(roomy.code).toBe(0);
    expect(roomy.stdout).toMatch(/^puck\.js: about \d+ of 2630 variables, .*: it fits\n$/);
    const tight = await house.cli(["check", good, "--board", "esp8266"]);
    expect([tight.code, tight.stdout]).toEqual([1, expect.stringContaining("it does not fit")]);
    const unknown = await house.cli(["check", good, "--board", "puck"]);
    expect([unknown.code, unknown.stderr]).toEqual([
      2,
      expect.stringContaining("puck.js, pi-pico"),
    ]);
    const json = await house.cli(["check", good, "--json"]);
    expect([json.code, JSON.parse(json.stdout)]).toEqual([
      0,
      { file: good, ok: true, refused: [], asked: [], modules: [] },
    ]);
    const sensing =
      "export default (agent) => { agent.x = [require('DHT22'), require('crypto')]; };";
    const needy = await house.cli(["check", house.write("dht.mjs", sensing), "--board", "puck.js"]);
    expect(needy).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/requires: DHT22, crypto\n.*of puck\.js: DHT22: specify/),
    });
  });

  it("waits for an unreachable relay", async () => {
    const agent = await add("patient-1");
    const away = house.start(["agent", "run", program, "--json"], {
      ...environmentOf(agent),
      BLINDRELAY_URL: `http://127.0.0.1:${await freePort()}`,
    });
    expect(await away.json()).toMatchObject({ event: "offline" });
    expect(await away.json()).toMatchObject({ event: "offline" });
    expect((await away.stop()).code).toBe(0);
  });
});
