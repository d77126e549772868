import type { Agent } from "@blindrelay/agent-sdk";
import type { Client, Presence } from "@blindrelay/client-sdk";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { FakeDevice } from "./fake-device.ts";
import { MemoryRelay } from "./memory-relay.ts";

const pump = (agent: Agent): void => {
  let percent = 0;
  agent.handle("pump.set", (params) => {
    const wanted = (params as { percent: number }).percent;
    if (wanted > 100) throw Object.assign(new Error("percent: 0 to 100"), { code: 7 });
    percent = wanted;
    agent.emit("pump.moved", { percent });
    return { percent };
  });
  agent.handle("pump.state", () => ({ percent }));
  agent.handle("pump.slow", () => new Promise(() => undefined));
};

let relay: MemoryRelay;
let device: FakeDevice;
let client: Client;

beforeEach(async () => {
  relay = new MemoryRelay();
  device = await relay.addDevice(pump, { id: "pump-7", name: "Pump in the cellar" });
  client = await relay.connect({ presence: true });
});

afterEach(() => relay.close());

const call = (method: string, params?: unknown, options = {}) =>
  client.agent(device.id, device.secret).call(method, params, options);

describe("a fake device", () => {
  test.each(["3", "4"] as const)(
    "speaks packet version %s, also after a power cut",
    async (version) => {
      const one = await relay.addDevice(pump, { version });
      const agent = client.agent(one.id, one.secret, { version });
      expect(await agent.call("pump.set", { percent: 40 })).toEqual({ percent: 40 });
      one.powerOff();
      await one.powerOn();
      expect(await agent.call("pump.state", {}, { idempotent: true })).toEqual({ percent: 0 });
    },
  );

  test("answers an app's own calls, sealed as on a wire", async () => {
    expect(device.online).toBe(true);
    expect(await call("pump.set", { percent: 40 })).toEqual({ percent: 40 });
    expect(await call("system.info")).toMatchObject({ name: "Pump in the cellar" });
    const other = await relay.addDevice(pump, { id: "pump-8", version: "2" });
    const two = client.agent(other.id, other.secret, { version: "2" });
    expect(await two.call("pump.state")).toEqual({ percent: 0 });
    await expect(
      client.agent(device.id, other.secret).call("pump.state", null, { timeoutMs: 20 }),
    ).rejects.toMatchObject({ code: "BAD_ARGUMENT" });
  });

  test("rejects a call that its program refuses, with the program's code", async () => {
    await expect(call("pump.set", { percent: 101 })).rejects.toMatchObject({
      code: "REMOTE",
      remote: { code: 7, message: "percent: 0 to 100" },
    });
  });

  test("sends its events to an app", async () => {
    const heard = new Promise((resolve) =>
      client.agent(device.id, device.secret).on("event", (...what) => resolve(what)),
    );
    // The listener's session opens by itself; this call waits for it.
    await call("pump.state");
    device.agent.emit("pump.empty", { since: 1 });
    expect(await heard).toEqual(["pump.empty", { since: 1 }]);
  });

  test("is offline while it is off, and starts without its previous state", async () => {
    const said: Presence[] = [];
    client.on("presence", (presence) => said.push(presence));
    await call("pump.set", { percent: 40 });
    device.powerOff();
    await expect(call("pump.state")).rejects.toMatchObject({ code: "AGENT_OFFLINE" });
    expect(() => device.agent).toThrow("pump-7 is off");
    await device.powerOn();
    expect(await call("pump.state")).toEqual({ percent: 0 });
    expect(said.map(({ online }) => online)).toEqual([true, false, true]);
    expect(device.boots).toBe(2);
  });

  test("keeps an app waiting until its deadline, with fake timers too", async () => {
    await call("pump.state");
    vi.useFakeTimers();
    try {
      expect(await call("pump.set", { percent: 3 })).toEqual({ percent: 3 });
      const slow = call("pump.slow", undefined, { timeoutMs: 5_000 });
      const failed = expect(slow).rejects.toMatchObject({ code: "TIMED_OUT" });
      await vi.advanceTimersByTimeAsync(5_100);
      await failed;
    } finally {
      vi.useRealTimers();
    }
  });

  test("fails to start with the error that its program threw, or if its id is taken", async () => {
    const broken = () => {
      throw new Error("no such pin");
    };
    await expect(relay.addDevice(broken)).rejects.toThrow("no such pin");
    await expect(relay.addDevice(pump, { id: "pump-7" })).rejects.toThrow("already");
    await expect(relay.addDevice(pump, { id: "pump 7" })).rejects.toThrow("not an agent id");
  });
});
