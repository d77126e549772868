/**
 * Packet versions "3" and "4" as a user meets them: a key of the device's own, and what refuses it.
 */
import { readFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { House, PASSWORD, type Running } from "./processes.ts";

const PROGRAM = `
export default (agent) => {
  agent.handle("echo", (params) => params);
};
`;

const house = new House();
let door: Record<string, string>;
let running: Running;

const variables = (text: string): Record<string, string> =>
  Object.fromEntries(
    text
      .trim()
      .split("\n")
      .map((line) => line.split("=") as [string, string]),
  );

const runDoor = async (env: Record<string, string>): Promise<Running> => {
  const program = house.write("door.mjs", PROGRAM);
  const agent = house.start(["agent", "run", program, "--json"], {
    ...env,
    BLINDRELAY_STATE_DIR: house.path("door"),
  });
  await agent.json();
  return agent;
};

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
  const add = ["agent", "add", "Door", "--id", "door", "--packet-version", "3", "--device-key"];
  const made = await house.cli([...add, "--env"]);
  expect(made.code).toBe(0);
  door = variables(made.stdout);
  running = await runDoor(door);
});

afterAll(() => house.close());

it("a device with a key of its own is called by the keyring, and kept through a restart", async () => {
  const call = ["call", "door", "echo", '{"open":true}'];
  expect(await house.cli(call)).toMatchObject({ code: 0, stdout: '{"open":true}\n' });
  await running.stop();
  const slot = readFileSync(house.path("door/boot.0"), "utf8");
  expect(slot).toMatch(/^blindrelay-boot 2 \d+ [0-9a-f]{64} [0-9a-f]{64} [0-9a-f]{8}\n$/);
  running = await runDoor(door);
  expect(await house.cli(call)).toMatchObject({ code: 0, stdout: '{"open":true}\n' });
  expect(readFileSync(house.path("door/boot.0"), "utf8")).not.toBe(slot);
});

it.each([
  ["another device key", { BLINDRELAY_DEVICE_KEY: "3CzKMejkO72R3_fkdcyjNH60eBB9W9dlq6SuSjDDXUQ" }],
  ["none", {}],
])("a client with %s refuses the device at once, with exit 6", async (_what, env) => {
  const { BLINDRELAY_AGENT_TOKEN = "", BLINDRELAY_PACKET_VERSION = "" } = door;
  const account = await house.cli(["auth", "token"]);
  const { code, stderr } = await house.cli(["call", "door", "echo", "{}"], {
    BLINDRELAY_URL: house.url,
    BLINDRELAY_ACCOUNT_TOKEN: account.stdout.trim(),
    BLINDRELAY_AGENT_TOKEN,
    BLINDRELAY_PACKET_VERSION,
    BLINDRELAY_CONFIG_DIR: house.path("nowhere"),
    ...env,
  });
  expect([code, stderr]).toEqual([6, expect.stringContaining("device key")]);
});

it("refuses what does not go together, before anything is sent", async () => {
  const add = ["agent", "add", "Lamp", "--id", "lamp"];
  const without = await house.cli([...add, "--device-key", "--env"]);
  expect([without.code, without.stderr]).toEqual([2, expect.stringContaining('"3" or "4"')]);
  const unseen = await house.cli([...add, "--packet-version", "4", "--device-key"]);
  expect([unseen.code, unseen.stderr]).toEqual([2, expect.stringContaining("--env")]);
  const nowhere = await house.cli(["agent", "export", "door", "--format", "espruino"]);
  expect([nowhere.code, nowhere.stderr]).toEqual([2, expect.stringContaining("Espruino")]);
  const program = house.write("door.mjs", PROGRAM);
  const unkeyed = await house.cli(["agent", "run", program, "--agent", "door"]);
  expect([unkeyed.code, unkeyed.stderr]).toEqual([
    2,
    expect.stringContaining("BLINDRELAY_DEVICE_SECRET"),
  ]);
});

it("a folder that was provisioned under 1 has no seed, and starts under 3 with exit 7", async () => {
  await house.cli(["agent", "add", "Old", "--id", "old"]);
  const program = house.write("door.mjs", PROGRAM);
  const run = ["agent", "run", program, "--agent", "old", "--json"];
  const first = house.start(run);
  await first.json();
  await first.stop();
  const { code, stderr } = await house.cli(run, { BLINDRELAY_PACKET_VERSION: "3" });
  expect([code, stderr]).toEqual([7, expect.stringContaining("seed")]);
});
