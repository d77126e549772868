/** `agent rekey` as it is typed: over a real relay, through kills, with and without a push key. */
import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD, type Running } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("echo", (params) => params);
};
`;

const house = new House();
let program: string;

interface Keyring {
  readonly keyring: { readonly [id: string]: { readonly agent_token: string } };
  readonly pending?: { readonly [id: string]: { readonly agent_token: string } };
}

const profile = (): Keyring => JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));
const secretOf = (id: string): string => profile().keyring[id]?.agent_token ?? "";

/** An agent that runs with what `agent export` printed, which it keeps for good. */
const begin = async (id: string, ...more: string[]): Promise<() => Promise<Running>> => {
  const version = more[0]?.startsWith("--packet") === true ? more.splice(0, 2) : [];
  await house.cli(["agent", "add", id, "--id", id, ...version]);
  const exported = await house.cli(["agent", "export", id, "--env"]);
  const env = Object.fromEntries(
    exported.stdout
      .trim()
      .split("\n")
      .map((line) => line.split("=")),
  );
  return async () => {
    const state = { BLINDRELAY_STATE_DIR: house.path(`state-${id}`) };
    const agent = house.start(["agent", "run", program, "--json", ...more], { ...env, ...state });
    await agent.json();
    return agent;
  };
};

const calls = (id: string) => house.cli(["call", id, "echo", "[1]", "--timeout", "20"]);

beforeAll(async () => {
  await house.open();
  program = house.write("pump.mjs", PROGRAM);
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
});

afterAll(() => house.close());

it.each(["1", "3"])(
  "changes the secret of a device under packet version %s for good",
  async (v) => {
    const id = `pump-${v}`;
    const run = await begin(id, "--packet-version", v);
    const first = await run();
    const old = secretOf(id);
    const said = await house.cli(["agent", "rekey", id]);
    expect([said.code, said.stdout]).toEqual([0, `${id} has a new secret\n`]);
    expect(secretOf(id)).not.toBe(old);
    expect(profile().pending).toBeUndefined();
    expect(await calls(id)).toMatchObject({ code: 0, stdout: "[1]\n" });
    const withOld = await house.cli(["call", id, "echo", "[1]", "--timeout", "3"], {
      BLINDRELAY_AGENT_TOKEN: old,
      BLINDRELAY_PACKET_VERSION: v,
    });
    expect(withOld.code).toBe(6);
    // The environment still has the old one, which the folder knows.
    await first.stop();
    const second = await run();
    await second.complains("replaced over the air");
    expect(await calls(id)).toMatchObject({ code: 0, stdout: "[1]\n" });
  },
);

it("goes on after the command was killed, and calls meanwhile find the right secret", async () => {
  const run = await begin("lamp");
  await run();
  for (let kill = 0; kill < 4; kill++) {
    const rekeying = house.start(["agent", "rekey", "lamp"]);
    const sent = new Promise((done) => setTimeout(done, 350 + 120 * kill));
    await Promise.race([sent, rekeying.ended]);
    await rekeying.stop("SIGKILL");
    expect(await calls("lamp")).toMatchObject({ code: 0, stdout: "[1]\n" });
  }
  const before = secretOf("lamp");
  expect((await house.cli(["agent", "rekey", "lamp"])).code).toBe(0);
  expect(profile().pending).toBeUndefined();
  expect(typeof before).toBe("string");
  expect(await calls("lamp")).toMatchObject({ code: 0, stdout: "[1]\n" });
}, 60_000);

it("wants the push key of a device that has one, and is refused where it is off", async () => {
  const key = house.path("push.key");
  await (await begin("door", "--push-key", key))();
  const without = await house.cli(["agent", "rekey", "door"]);
  expect([without.code, without.stderr]).toEqual([3, expect.stringContaining("--push-key")]);
  expect((await house.cli(["agent", "rekey", "door", "--push-key", key])).code).toBe(0);
  await (await begin("vault", "--no-rekey"))();
  const off = await house.cli(["agent", "rekey", "vault"]);
  expect([off.code, off.stderr]).toEqual([3, expect.stringContaining("--no-rekey")]);
  const all = await house.cli(["agent", "rekey", "--where", "id~*o*", "--push-key", key]);
  expect([all.code, all.stdout]).toEqual([0, "door has a new secret\n"]);
});

it("of many has the outcomes of a call to many", async () => {
  await house.cli(["agent", "add", "cellar", "--id", "cellar"]);
  await house.cli(["agent", "add", "attic", "--id", "attic"]);
  const kept = profile();
  const { attic: _, ...keyring } = kept.keyring;
  writeFileSync(house.path("config/default.json"), JSON.stringify({ ...kept, keyring }));
  const all = await house.cli(["agent", "rekey", "--where", "id~*a*,id!=vault", "--json"]);
  const lines = all.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line))
    .sort((a, b) => (a.agent_id < b.agent_id ? -1 : 1));
  const line = { result: null, at: expect.stringMatching(/^\d{4}-.*Z$/) };
  expect(lines).toEqual([
    { agent_id: "attic", outcome: "skipped", error: expect.stringContaining("no secret"), ...line },
    { agent_id: "cellar", outcome: "offline", error: expect.stringMatching(/^The agent/), ...line },
    { agent_id: "lamp", outcome: "ok", error: null, ...line },
  ]);
  expect([all.code, all.stderr]).toEqual([1, expect.stringContaining("1 offline")]);
});

it("says what is wrong before anything is changed", async () => {
  const wrong = async (...args: string[]) => (await house.cli(["agent", "rekey", ...args])).code;
  expect(await wrong()).toBe(2);
  expect(await wrong("nobody")).toBe(2);
  expect(await wrong("lamp", "--where", "id=lamp")).toBe(2);
  expect(await wrong("lamp", "--push-key", house.path("none.key"))).toBe(2);
});
