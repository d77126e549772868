/**
 * A rollout to boards: they do not install releases by themselves, somebody flashes them; but they
 * report which version has booted, and only that confirms it.
 */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { MemoryPreference, XsDevice } from "@blindrelay/agent-sdk/engines";
import { systemTimer } from "@blindrelay/agent-sdk/node";
import { buildEspruino, buildProgram } from "@blindrelay/agent-sdk/testing/build/espruino";
import { SubsetBoard } from "@blindrelay/agent-sdk/testing/espruino-subset";
import { wsWire } from "@blindrelay/agent-sdk/testing/ws-wire";
import { makeToken } from "@blindrelay/protocol";
import type { Agent, AgentCreated, Release } from "@blindrelay/protocol/schema/rest";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { House, PASSWORD } from "../cli/processes.ts";
import { engine, makeScript, whySkipped, withoutEngine } from "../xs/engine.ts";
import type { Credentials } from "../xs/relay-fixture.ts";

const house = new House();
const ends: (() => unknown)[] = [];
let account: string;

const rest = async <T>(path: string, token: string, body?: object): Promise<T> => {
  const response = await fetch(`${house.url}/api/v1${path}`, {
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
  });
  return (await response.json()) as T;
};

beforeAll(async () => {
  const keyFile = house.path("release.pem");
  const key = await house.cli(["release", "keygen", keyFile, "--json"]);
  await house.open({ releaseKeys: [JSON.parse(key.stdout).public_key] });
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
  account = JSON.parse(readFileSync(house.path("config/default.json"), "utf8")).account_token;
});
afterEach(async () => {
  for (const end of ends.splice(0)) await end();
});
afterAll(() => house.close());

/** Starts the board with a program of this version; resolves when it is online. */
type Boot = (credentials: Credentials, version: string) => Promise<void>;

const confirmedByBooting = async (runtime: string, boot: Boot): Promise<void> => {
  const made = await rest<AgentCreated>("/agents", account, { name: "Pump", agent_id: runtime });
  const image = house.write("image", `for ${runtime}`);
  const published = await house.cli([
    ...["release", "publish", image, "--runtime", runtime, "--channel", "boards", "--json"],
    ...["--firmware-version", "1.1.0", "--key", house.path("release.pem")],
  ]);
  const { id } = JSON.parse(published.stdout) as Release;
  const rollout = async () => (await rest<Release>(`/releases/${id}`, account)).rollout;
  await rest(`/releases/check?channel=boards&version=1.0.0&runtime=${runtime}`, made.api_token);
  expect(await rollout()).toMatchObject({ offered: 1, confirmed: 0 });

  const identity = {
    url: house.url,
    agentId: runtime,
    relayToken: made.api_token,
    agentToken: makeToken("e2e", randomBytes(32)),
  };
  const agent = async () => (await rest<Agent>(`/agents/${runtime}`, account)).firmware_version;
  await boot(identity, "1.0.0");
  await expect.poll(agent).toBe("1.0.0");
  expect(await rollout()).toMatchObject({ confirmed: 0 });
  for (const end of ends.splice(0)) await end();

  await boot(identity, "1.1.0");
  await expect.poll(agent).toBe("1.1.0");
  await expect.poll(rollout).toMatchObject({ offered: 1, confirmed: 1 });
};

it("confirms a version that has booted on Espruino (subset check)", async () => {
  const files = new Map([
    ["blindrelay", buildEspruino("2").stored],
    ["program", buildProgram(fileURLToPath(new URL("../xs/counter.ts", import.meta.url))).code],
  ]);
  await confirmedByBooting("espruino", async (identity, version) => {
    if (!files.has("blindrelay.json")) {
      const config = {
        url: `${identity.url.replace("http", "ws")}/wss`,
        agent_id: identity.agentId,
        relay_token: identity.relayToken,
        agent_token: identity.agentToken,
        v: "2",
      };
      files.set("blindrelay.json", JSON.stringify(config));
      new SubsetBoard(files).evaluate('require("blindrelay").provision()');
    }
    const board = new SubsetBoard(files);
    ends.push(() => board.powerOff());
    const start = `start(require("program").program, ${JSON.stringify(version)})`;
    board.evaluate(`require("blindrelay").${start}`);
    await expect.poll(() => board.evaluate('require("blindrelay").status().state')).toBe("online");
  });
});

describe.skipIf(withoutEngine)(`in XS${whySkipped}`, () => {
  it("confirms a version that has booted on Moddable", async () => {
    const script = await makeScript();
    const preference = new MemoryPreference();
    await confirmedByBooting("moddable", async (identity, version) => {
      let isOnline = false;
      const device = new XsDevice({
        ...{ engine, script, preference, timer: systemTimer(), connect: wsWire },
        maxCompute: 2e8,
        onState: ({ state }) => {
          if (state === "online") isOnline = true;
        },
      });
      ends.push(() => device.end());
      if (preference.values.size === 0) device.provision(identity.agentToken);
      device.start({ ...identity, firmwareVersion: version }, "counter");
      await expect.poll(() => isOnline).toBe(true);
    });
  }, 600_000);
});
