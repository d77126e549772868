/**
 * The Moddable build in the real XS engine, on a real relay over a real socket, called by the client's
 * SDK; beside it the same device programs on Node.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Program } from "@blindrelay/agent-sdk";
import { startAgent, systemTimer } from "@blindrelay/agent-sdk/node";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { FakePreference } from "../../../agent-sdk/src/testing/moddable-sdk.ts";
import { wsWire } from "../../../agent-sdk/src/testing/ws-wire.ts";
import { XsDevice } from "../../../agent-sdk/src/testing/xs-device.ts";
import { KINDS } from "../../../simulator/src/devices/kinds.ts";
import { engine, makeScript, whySkipped, withoutEngine } from "./engine.ts";
import { type Credentials, type Household, openHousehold } from "./household.ts";

const MAX_COMPUTE = 2e8;
const MAX_MEMORY_KIB = 131072;

describe.skipIf(withoutEngine)(`an agent in XS on a real relay${whySkipped}`, () => {
  let household: Household;
  let script: string;
  let devices: XsDevice[] = [];

  beforeAll(async () => {
    [household, script] = await Promise.all([openHousehold(), makeScript()]);
  }, 600_000);
  afterAll(() => household?.end());
  afterEach(async () => {
    for (const device of devices) await device.end();
    devices = [];
  });

  /** Switches a board on; resolves when it is online. */
  const powerOn = (
    board: { readonly credentials: Credentials; readonly preference: FakePreference },
    program: string,
    packetVersion: "1" | "2" = "1",
  ): Promise<XsDevice> =>
    new Promise((resolve, reject) => {
      const device: XsDevice = new XsDevice({
        engine,
        script,
        timer: systemTimer(),
        connect: wsWire,
        preference: board.preference,
        maxCompute: MAX_COMPUTE,
        maxMemoryKiB: MAX_MEMORY_KIB,
        onState: ({ state, advice }) => {
          if (state === "online") resolve(device);
          if (state === "final" || state === "waiting") reject(new Error(`${state}: ${advice}`));
        },
      });
      devices.push(device);
      if (board.preference.values.size === 0) device.provision(board.credentials.agentToken);
      device.start({ ...board.credentials, packetVersion, name: "board" }, program);
    });

  const newBoard = async () => ({
    credentials: await household.addAgent("board"),
    preference: new FakePreference(),
  });

  it.each(["1", "2"] as const)(
    "answers calls sealed with suite %s, and says who it is",
    async (version) => {
      const board = await newBoard();
      await powerOn(board, "counter", version);
      const { agentId, agentToken } = board.credentials;
      const agent = household.client.agent(agentId, agentToken, { version });
      const params = { text: "grüße 中文 🚰", n: [0.1, 1e21, -0] };
      expect(await agent.call("do", params)).toEqual({
        times: 1,
        with: JSON.parse(JSON.stringify(params)),
      });
      expect(await agent.call("later")).toEqual({ late: true });
      await expect(agent.call("fail")).rejects.toMatchObject({ code: "REMOTE" });
      expect(await agent.call("system.info")).toMatchObject({
        runtime: "moddable xsnap",
        name: "board",
      });
      const many = Array.from({ length: 20 }, (_, i) => agent.call("do", { i }));
      expect(
        (await Promise.all(many)).map((result) => (result as { with: { i: number } }).with.i),
      ).toEqual(many.map((_, i) => i));
    },
  );

  it("sends events to who listens, and takes a call and answer of 40,000 bytes in parts", async () => {
    const board = await newBoard();
    await powerOn(board, "counter");
    const agent = household.client.agent(board.credentials.agentId, board.credentials.agentToken);
    const heard = new Promise((resolve) =>
      agent.on("event", (event, data) => resolve([event, data])),
    );
    const long = "x".repeat(40_000);
    expect(await agent.call("do", { long })).toEqual({ times: 1, with: { long } });
    expect(await heard).toEqual(["done", { times: 1 }]);
  });

  it("comes back after its power was cut, with a boot count that never repeats", async () => {
    const board = await newBoard();
    const { agentId, agentToken } = board.credentials;
    const agent = household.client.agent(agentId, agentToken);
    const first = await powerOn(board, "counter");
    expect(await agent.call("do")).toMatchObject({ times: 1 });
    const before = [...board.preference.values.entries()].map(([key, value]) => [
      key,
      `${new Uint8Array(value)}`,
    ]);
    await first.end();
    await powerOn(board, "counter");
    expect(await agent.call("done", {}, { idempotent: true, timeoutMs: 15_000 })).toEqual({
      times: 0,
    });
    const after = [...board.preference.values.entries()].map(([key, value]) => [
      key,
      `${new Uint8Array(value)}`,
    ]);
    expect(after).not.toEqual(before);
  });

  it("refuses to start on an empty flash, and to be provisioned twice for one secret", async () => {
    const board = await newBoard();
    const device = new XsDevice({
      engine,
      script,
      timer: systemTimer(),
      connect: wsWire,
      preference: board.preference,
      maxCompute: MAX_COMPUTE,
    });
    devices.push(device);
    expect(() => device.start(board.credentials, "counter")).toThrow("there is no boot count");
    device.provision(board.credentials.agentToken);
    expect(() => device.provision(board.credentials.agentToken)).toThrow("never used here");
  });

  it.each(KINDS)(
    "runs the simulator's $name as Node does, and no client can tell them apart",
    async (kind) => {
      const seed = `one ${kind.name}`;
      const board = await newBoard();
      await powerOn(board, kind.name);
      const other = await household.addAgent(seed);
      const stateDir = mkdtempSync(join(tmpdir(), "blindrelay-twin-"));
      const program = kind.program as Program;
      const onNode = await startAgent({
        ...other,
        name: "board",
        stateDir,
        program,
        log: () => {},
      });
      await onNode.online();
      const inXs = household.client.agent(board.credentials.agentId, board.credentials.agentToken);
      const inNode = household.client.agent(other.agentId, other.agentToken);
      const interview = kind.interview("board");
      for (let i = 0; i < 20; i++) {
        const { method, params, right } = interview.ask();
        const [a, b] = await Promise.all([inXs.call(method, params), inNode.call(method, params)]);
        expect(right(a)).toBe(true);
        expect(JSON.stringify(a)).toBe(JSON.stringify(b));
      }
      for (const [method, params] of [
        ["nothing.like.this", {}],
        ["valve.open", { percent: -1 }],
        ["sensor.read", []],
      ] as const) {
        const [a, b] = await Promise.allSettled([
          inXs.call(method, params),
          inNode.call(method, params),
        ]);
        const told = (one: PromiseSettledResult<unknown>) =>
          one.status === "fulfilled" ? typeof one.value : { ...one.reason.remote };
        expect(told(a)).toEqual(told(b));
      }
      await onNode.stop();
      rmSync(stateDir, { recursive: true, force: true });
    },
  );
});
