/** What the command tells a person who mistypes, waits or begins. */
import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { HAS_SOCAT } from "@blindrelay/tools/testing/serial/pty";
import { afterAll, beforeAll, expect, it } from "vitest";
import { CLI, House, PASSWORD } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("valve.open", (params) => params);
  agent.handle("state", () => ({ percent: 40 }));
};
`;

const house = new House();
let program: string;

const logIn = (url: string, profile: string) =>
  house.cli(
    ["--profile", profile, "login", "--url", url, "--username", "ada", "--password-stdin"],
    {},
    `${PASSWORD}\n`,
  );

beforeAll(async () => {
  await house.open();
  await logIn(house.url, "default");
  program = house.write("pump.mjs", PROGRAM);
});

afterAll(() => house.close());

it("an account without agents is told how to add one, and stdout stays a table", async () => {
  const { stdout, stderr } = await house.cli(["agent", "list"]);
  expect(stdout).toMatch(/^AGENT +STATUS/);
  expect(stderr).toBe("you have no agents yet: blindrelay agent add NAME\n");
});

it("a relay's address may lack its scheme, or be copied from the browser", async () => {
  const host = new URL(house.url).host;
  for (const [i, url] of [host, `${house.url}/console`, `${house.url}/console/#/x`].entries()) {
    const { code, stdout } = await logIn(url, `copied-${i}`);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`logged in to ${house.url} as`)]);
  }
  const wrong = await logIn(`${house.url}/elsewhere`, "wrong");
  expect(wrong.stderr).toContain(
    `${house.url}/elsewhere is not a relay's address, but ${house.url} may be`,
  );
});

it.each([
  [0o644, /^others on this machine may read [^\n]*chmod 600[^\n]*\n$/],
  [0o600, /^$/],
])("secrets that go into a file of mode %o: %s", (mode, told) => {
  const file = openSync(house.path(`token-${mode}`), "w", mode);
  const env = { ...process.env, BLINDRELAY_CONFIG_DIR: house.path("config") };
  const ran = spawnSync(process.execPath, [CLI, "auth", "token"], {
    env,
    stdio: ["ignore", file, "pipe"],
  });
  closeSync(file);
  expect([ran.status, ran.stderr.toString()]).toEqual([0, expect.stringMatching(told)]);
});

it("a state folder that another agent runs on is named once", async () => {
  await house.cli(["agent", "add", "Twin", "--id", "twin"]);
  const args = ["agent", "run", program, "--agent", "twin", "--state-dir", house.path("twin")];
  const running = house.start(args);
  await running.complains("twin is online");
  const { code, stderr } = await house.cli(args);
  await running.stop();
  expect([code, stderr]).toEqual([7, expect.stringContaining("another agent runs")]);
  expect(stderr.split(house.path("twin"))).toHaveLength(2);
});

it("a mistyped agent is asked about, and a missing argument shows the usage", async () => {
  await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  const call = await house.cli(["call", "pump7", "state"]);
  expect([call.code, call.stderr]).toEqual([2, expect.stringContaining('mean "pump-7"?')]);
  const show = await house.cli(["agent", "show", "pump7"]);
  expect([show.code, show.stderr]).toEqual([5, expect.stringContaining('mean "pump-7"?')]);
  const other = await house.cli(["call", "boiler", "state"]);
  expect(other.stderr).not.toContain("did you mean");
  expect((await house.cli(["call"])).stderr).toBe(
    "error: missing required argument 'agent'\nUsage: blindrelay call [options] <agent> <method> [json]\n",
  );
  expect((await house.cli(["logout"])).stderr).toContain("it is: blindrelay auth logout");
});

it("who has not logged in is asked for the relay, and a missing program is found before it", async () => {
  const env = { BLINDRELAY_CONFIG_DIR: house.path("nothing") };
  for (const args of [
    ["call", "pump-7", "state"],
    ["events", "pump-7"],
    ["push", "pump-7", program],
    ["agent", "run", program, "--agent", "pump-7"],
  ]) {
    const { code, stderr } = await house.cli(args, env);
    expect([code, stderr.split("\n").at(-2)]).toEqual([
      2,
      expect.stringContaining("which relay? set BLINDRELAY_URL"),
    ]);
  }
  const { code, stderr } = await house.cli(["agent", "run", "nope.js", "--agent", "pump-7"], env);
  expect([code, stderr]).toEqual([2, "blindrelay: there is no device program nope.js\n"]);
});

it("a push that fails prints one JSON document all the same", async () => {
  await house.cli(["agent", "add", "Away", "--id", "away-1"]);
  const one = await house.cli(["push", "away-1", program, "--json", "--timeout", "10"], {
    BLINDRELAY_URL: `http://127.0.0.1:${await freePort()}`,
    BLINDRELAY_ACCOUNT_TOKEN: (await house.cli(["auth", "token"])).stdout,
  });
  expect([one.code, JSON.parse(one.stdout)]).toEqual([
    4,
    { agent_id: "away-1", reason: expect.stringContaining("no connection") },
  ]);
  const all = await house.cli(["push", program, "--all", "--json"]);
  expect([all.code, JSON.parse(all.stdout)]).toMatchObject([4, { kept: [], failed: [] }]);
});

it("the relay's complaint about a value is one sentence", async () => {
  const { stderr } = await house.cli(["agent", "add", "x".repeat(129)]);
  expect(stderr).toMatch(
    /^blindrelay: The request does not have the right shape; \/name: [^.;]*\n$/,
  );
});

it("a failure under --json is one JSON document on standard error", async () => {
  const errorOf = async (args: string[]) => {
    const { code, stdout, stderr } = await house.cli(args);
    expect(stdout).toBe("");
    return { code, ...JSON.parse(stderr) };
  };
  expect(await errorOf(["agent", "show", "no-such", "--json"])).toEqual({
    code: 5,
    error: { kind: "refused", exit_code: 5, message: expect.stringContaining("does not exist") },
  });
  expect(await errorOf(["call", "--json"])).toEqual({
    code: 2,
    error: { kind: "usage", exit_code: 2, message: "missing required argument 'agent'" },
  });
});

it("a folder in a program's place is named as such, without a stack", async () => {
  for (const args of [
    ["agent", "run", house.folder, "--agent", "pump-7"],
    ["check", house.folder],
  ]) {
    const { code, stderr } = await house.cli(args);
    expect([code, stderr]).toEqual([
      2,
      expect.stringMatching(/^blindrelay: .* is a folder: .*\n$/),
    ]);
  }
});

it.skipIf(!HAS_SOCAT)(
  "a person at a terminal gets JSON, near methods and help without a dot",
  async () => {
    const agent = house.start(["agent", "run", program, "--agent", "pump-7", "--json"]);
    await agent.json();
    const call = house.terminal(["call", "pump-7", "valve.opn"]);
    await call.sees(/no method valve\.opn \(did you mean "valve\.open"\?\)/);
    const shell = house.terminal(["shell", "pump-7"]);
    await shell.sees(/pump-7> /);
    shell.type("state\r");
    await shell.sees(/\{"percent":40\}/);
    shell.type("help\r");
    await shell.sees(/METHOD \[JSON\]/);
    shell.type("stat\r");
    await shell.sees(/did you mean "state"\?/);
    shell.type("exit\r");
    expect(await shell.ended()).toBe(0);
    const added = house.terminal(["agent", "add", "Tank", "--id", "tank-1"]);
    await added.sees(/next: blindrelay agent run \.\/program\.js --agent tank-1/);
    await agent.stop();
  },
);

it("events ends at Ctrl-C without a word about each agent", async () => {
  const agent = house.start(["agent", "run", program, "--agent", "pump-7", "--json"]);
  await agent.json();
  const events = house.start(["events", "--json"]);
  await events.json();
  const { stdout } = await events.stop("SIGINT");
  expect(stdout).not.toContain("the client ends");
  await agent.stop();
});

// Last: it moves the relay.
it("agent run and call --wait wait for a relay that is away", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const env = {
    BLINDRELAY_URL: url,
    BLINDRELAY_ACCOUNT_TOKEN: (await house.cli(["auth", "token"])).stdout,
  };
  const agent = house.start(["agent", "run", program, "--agent", "pump-7", "--json"], env);
  const call = house.start(["call", "pump-7", "state", "--wait", "--timeout", "200"], env);
  const push = house.start(["push", "pump-7", program, "--wait", "--json"], env);
  const unwilling = await house.cli(["call", "pump-7", "state"], env);
  expect(unwilling.code).toBe(4);
  await Promise.all([agent.complains("cannot be reached"), call.complains("it keeps trying")]);
  await house.moveTo(port);
  expect(await agent.json()).toEqual({ event: "online", agent_id: "pump-7" });
  expect(await call.line()).toBe('{"percent":40}');
  // It has waited, and then heard the agent's refusal.
  expect(await push.json()).toMatchObject({ reason: expect.stringContaining("--allow-push") });
  expect(await agent.stop()).toMatchObject({
    code: 0,
    stderr: expect.stringContaining("cannot be reached"),
  });
  expect((await call.ended).stderr).toContain("(it keeps trying)");
});
