/** `agent rekey` as it is typed, of small devices over a real relay. */
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { MemoryStorage } from "@blindrelay/agent-sdk/memory";
import { systemTimer, webSocketLinks } from "@blindrelay/agent-sdk/node";
import { wsWire } from "@blindrelay/agent-sdk/testing/ws-wire";
import { isForward, type Version } from "@blindrelay/protocol/crypto";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Added, House, PASSWORD } from "../cli/processes.ts";
import { DEVICE_RUNTIMES, type Device, type Identity, type Place } from "./devices.ts";

const house = new House();

beforeAll(async () => {
  await house.open();
  const login = ["login", "--url", house.url, "--username", "ada", "--password-stdin"];
  await house.cli(login, {}, `${PASSWORD}\n`);
});

afterAll(() => house.close());

const secretOf = (id: string): string =>
  JSON.parse(readFileSync(house.path("config/default.json"), "utf8")).keyring[id].agent_token;

const calls = (id: string) => house.cli(["call", id, "echo", "[1]", "--timeout", "20"]);

const callsWith = (id: string, secret: string, version: string) =>
  house.cli(["call", id, "echo", "[1]", "--timeout", "3"], {
    BLINDRELAY_AGENT_TOKEN: secret,
    BLINDRELAY_PACKET_VERSION: version,
  });

describe.each(DEVICE_RUNTIMES)("$title", ({ title, isThere, load }) => {
  const name = title.slice(0, 2).toLowerCase();
  let make: (place: Place) => Device;
  let life: Device | null = null;

  beforeAll(async () => {
    if (isThere) make = await load();
  });

  const powerOff = async (): Promise<void> => {
    await life?.end();
    life = null;
  };

  afterEach(powerOff);

  const deviceOn = (storage: MemoryStorage, onState?: Place["onState"]): Device =>
    make({
      timer: systemTimer(),
      link: webSocketLinks(),
      connect: wsWire,
      storage,
      ...(onState && { onState }),
    });

  const powerOn = (storage: MemoryStorage, identity: Identity): Promise<void> =>
    new Promise((resolve, reject) => {
      life = deviceOn(storage, ({ state, advice }) => {
        if (state === "online") resolve();
        if (state === "refused") reject(new Error(`${advice}`));
      });
      life.start(identity);
    });

  /** An agent of the account, provisioned on an empty medium. */
  const provisioned = async (id: string, version: Version) => {
    const added = await house.cli([
      "agent",
      "add",
      id,
      "--id",
      id,
      "--packet-version",
      version,
      "--env",
      "--json",
    ]);
    const { api_token, agent_token } = JSON.parse(added.stdout) as Added;
    const storage = new MemoryStorage();
    const device = deviceOn(storage);
    const seed = isForward(version) ? randomBytes(32).toString("base64url") : undefined;
    device.provision(agent_token, seed);
    await device.end();
    const identity = {
      url: `${house.url.replace("http", "ws")}/wss`,
      agentId: id,
      relayToken: api_token,
      agentToken: agent_token,
      packetVersion: version,
    };
    return { storage, identity };
  };

  it.skipIf(!isThere).each(["1", "3"] as const)(
    "has a new secret after `agent rekey` under version %s, and keeps it over restarts",
    async (version) => {
      const id = `${name}-${version}`;
      const { storage, identity } = await provisioned(id, version);
      await powerOn(storage, identity);
      const said = await house.cli(["agent", "rekey", id]);
      expect([said.code, said.stdout]).toEqual([0, `${id} has a new secret\n`]);
      expect(secretOf(id)).not.toBe(identity.agentToken);
      for (let start = 0; start < 2; start++) {
        expect(await calls(id)).toMatchObject({ code: 0, stdout: "[1]\n" });
        await powerOff();
        // Its configuration has the old one for good.
        await powerOn(storage, identity);
      }
      expect((await callsWith(id, identity.agentToken, version)).code).toBe(6);
      const second = await house.cli(["agent", "rekey", id]);
      expect([second.code, second.stderr]).toEqual([0, ""]);
      expect(await calls(id)).toMatchObject({ code: 0, stdout: "[1]\n" });
    },
  );

  it.skipIf(!isThere)("wants the push key that it was started with", async () => {
    const id = `${name}-guarded`;
    const key = house.path(`${id}.key`);
    const { storage, identity } = await provisioned(id, "1");
    const other = await house.cli([
      "provision",
      "--out",
      house.path(`${id}-files`),
      "--id",
      `${id}-files`,
      "--push-key",
      key,
    ]);
    expect(other.code).toBe(0);
    const pushKey = readFileSync(key, "utf8").trim();
    await powerOn(storage, { ...identity, pushKey });
    const without = await house.cli(["agent", "rekey", id]);
    expect([without.code, without.stderr]).toEqual([3, expect.stringContaining("--push-key")]);
    expect((await house.cli(["agent", "rekey", id, "--push-key", key])).code).toBe(0);
    expect(await calls(id)).toMatchObject({ code: 0, stdout: "[1]\n" });
  });
});
