/** `agent add --from`: many agents at once, however often the command is killed. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { Rest } from "@blindrelay/client-sdk/rest";
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD } from "./processes.ts";

const house = new House();
const COUNT = 300;
const KILLS = 3;

beforeAll(async () => {
  await house.open();
  const { code, stderr } = await house.cli(
    ["login", "--url", house.url, "--username", "ada", "--password-stdin"],
    {},
    `${PASSWORD}\n`,
  );
  expect([code, stderr]).toEqual([0, expect.anything()]);
});
afterAll(() => house.close());

interface Listed {
  readonly agent_id: string;
  readonly name: string;
  readonly labels: Record<string, string>;
}

const profile = () => JSON.parse(readFileSync(house.path("config/default.json"), "utf8"));

const listed = (where: string): Promise<Listed[]> =>
  new Rest({ url: house.url, token: profile().account_token }).list("AgentPage", "/agents", {
    where,
  });

const secretsKept = (): string[] => {
  const { keyring, pending = {} } = profile();
  expect(pending).toEqual({});
  return Object.keys(keyring);
};

it("makes each agent once, with its secret, though it is killed again and again", async () => {
  // Every second device has no id: it is made from the name.
  const rows = Array.from(
    { length: COUNT },
    (_, n) => `unit ${n},${n % 2 === 0 ? `unit-${n}` : ""},fleet=many;floor=${n % 7}`,
  );
  const file = house.write("devices.csv", `name,id,labels\n${rows.join("\n")}\n`);
  const add = ["agent", "add", "--from", file, "--json"];
  for (let kill = 1; kill <= KILLS; kill++) {
    const running = house.start(add);
    // Until some of this run's agents are there, wherever the command is by then.
    await expect
      .poll(async () => (await listed("label.fleet=many")).length, { interval: 5 })
      .toBeGreaterThanOrEqual(((COUNT - BATCH_LEFT) * kill) / KILLS);
    await running.stop("SIGKILL");
  }
  const { code, stdout, stderr } = await house.cli([...add, "--out", house.path("files")]);
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^\d+ made, \d+ were there already/)]);
  const items: { agent_id: string; name: string }[] = JSON.parse(stdout).items;
  expect(items.map(({ name }) => name)).toEqual(rows.map((row) => row.split(",")[0]));

  const found = await listed("label.fleet=many");
  expect(found.map(({ name }) => name).sort()).toEqual(items.map(({ name }) => name).sort());
  const ids = found.map(({ agent_id }) => agent_id).sort();
  expect(ids).toEqual(items.map(({ agent_id }) => agent_id).sort());
  expect(secretsKept().sort()).toEqual(ids);
  const files = readdirSync(house.path("files"));
  expect(files.sort()).toEqual(ids.map((id) => `${id}.env`).sort());
  const one = house.path(`files/${ids[0]}.env`);
  expect(statSync(one).mode & 0o777).toBe(0o600);
  expect(readFileSync(one, "utf8")).toMatch(/BLINDRELAY_AGENT_TOKEN=e2e_/);
});

/** What one batch may make between two looks at the list. */
const BATCH_LEFT = 150;

it("leaves alone what the keyring has, and makes nothing where a secret is missing", async () => {
  const held = await house.cli(["agent", "add", "Pump", "--id", "pump-7"]);
  expect(held.code).toBe(0);
  const again = house.write("again.csv", "name,id,labels\nOther name,pump-7,site=x\n");
  const kept = await house.cli(["agent", "add", "--from", again]);
  expect([kept.code, kept.stdout]).toEqual([0, "pump-7\n"]);
  expect(await listed("id=pump-7")).toMatchObject([{ name: "Pump", labels: {} }]);

  const elsewhere = { BLINDRELAY_CONFIG_DIR: house.path("elsewhere") };
  await house.cli(
    ["login", "--url", house.url, "--username", "ada", "--password-stdin"],
    elsewhere,
    `${PASSWORD}\n`,
  );
  const list = house.write("new.csv", "name,id,labels\nNew,new-1,\nPump,pump-7,\n");
  const refused = await house.cli(["agent", "add", "--from", list], elsewhere);
  expect([refused.code, refused.stdout]).toEqual([5, ""]);
  expect(refused.stderr).toMatch(/line 3: pump-7 exists, .* nothing was made/);
  expect(await listed("id=new-1")).toEqual([]);
});

it("makes nothing where a line is wrong, and names it", async () => {
  const file = house.write("wrong.csv", "name,id,labels\nA,wrong-a,\nB,wrong b,\n");
  const { code, stdout, stderr } = await house.cli(["agent", "add", "--from", file]);
  expect([code, stdout]).toEqual([2, ""]);
  expect(stderr).toContain("wrong.csv:3");
  expect(await listed("id~wrong*")).toEqual([]);
  expect(existsSync(house.path("files/wrong-a.env"))).toBe(false);
});
