import { describe, expect, onTestFinished, vi } from "vitest";
import { VirtualFleet } from "../fleet/fleet.ts";
import type { World } from "../virtual/world.ts";
import { fleetTest } from "./index.ts";

const test = fleetTest.extend({
  fleet: {
    devices: [
      { group: "tanks", count: 3, program: "../testing/tank.js" },
      { group: "echoes", count: 1, kind: "echo" },
    ],
  },
});

describe("a fleet in a test", () => {
  test("is online when the test begins", async ({ devices, client, relay }) => {
    expect(devices.map(({ id, online }) => `${id} ${online}`)).toEqual([
      "tanks-00001 true",
      "tanks-00002 true",
      "tanks-00003 true",
      "echoes-00001 true",
    ]);
    expect(client.online).toBe(true);
    expect(relay.connections).toEqual({ client: 1, agent: 4 });
  });

  test("answers calls, each device from its own state", async ({ devices, client }) => {
    const [one, two] = devices as [(typeof devices)[0], (typeof devices)[0]];
    expect(await client.call(one, "tank.fill", { litres: 30 })).toEqual({ litres: 30 });
    const states = await Promise.all([
      client.call(one, "tank.state"),
      client.call(two, "tank.state"),
    ]);
    expect(states).toMatchObject([{ litres: 30 }, { litres: 0 }]);
  });

  test("rejects a call with the device's error", async ({ devices: [tank], client }) => {
    await expect(client.call(tank as never, "tank.fill", { litres: -1 })).rejects.toMatchObject({
      code: "REMOTE",
      remote: { message: "litres: 0 to 100" },
    });
  });

  test("shows what a device logged, and why it restarted", async ({
    devices: [tank],
    client,
    faults,
    clock,
  }) => {
    await expect(client.call(tank as never, "tank.fill", { litres: -1 })).rejects.toThrow();
    const before = await client.logs(tank as never);
    const failed = 'the handler of "tank.fill" failed {"reason":"litres: 0 to 100"}';
    expect(before.lines.map(({ text }) => text)).toContain(failed);
    expect(before.restart).toEqual({ reason: "first", text: "" });
    faults.inject({ kind: "device.reboot" }, tank as never);
    await clock.advance("2m");
    const after = await client.logs(tank as never);
    expect([after.restart.reason, after.boot]).toEqual(["reset", before.boot + 1]);
    expect(after.lines.map(({ text }) => text)).not.toContain(failed);
  });

  test("lets time pass only while the test waits", async ({ devices: [tank], client, clock }) => {
    const before = clock.now();
    await new Promise((resolve) => setTimeout(resolve, 5));
    expect(clock.now()).toBe(before);
    await clock.advance("10m");
    expect(clock.now()).toBe(before + 600_000);
    // It leaks a litre a minute, on its own timer.
    await client.call(tank as never, "tank.fill", { litres: 30 });
    await clock.advance("5m");
    expect(await client.call(tank as never, "tank.state")).toMatchObject({ litres: 25 });
  });

  test("delivers events of a device to the test that waits for them", async ({
    devices,
    client,
    clock,
  }) => {
    const [tank] = devices as [(typeof devices)[0]];
    const heard = new Promise((resolve) => client.agent(tank).on("event", resolve));
    await client.call(tank, "tank.fill", { litres: 3 });
    expect(await clock.until(heard)).toBe("tank.empty");
  });

  test("switches a device off and on", async ({ devices, client, clock, faults }) => {
    const [tank, other] = devices as [(typeof devices)[0], (typeof devices)[0]];
    await client.call(tank, "tank.fill", { litres: 30 });
    faults.inject({ kind: "device.reboot", for: "20s" }, tank);
    await clock.advance("10s");
    expect([tank.online, other.online]).toEqual([false, true]);
    // Cut power sends no close frame: the relay does not know yet.
    const call = client.call(tank, "tank.state", undefined, { timeoutMs: 2_000 });
    await expect(call).rejects.toMatchObject({ code: "TIMED_OUT" });
    await clock.advance("30s");
    expect([tank.online, tank.boots]).toEqual([true, 2]);
    expect(await client.call(tank, "tank.state")).toMatchObject({ litres: 0 });
  });

  test("comes back after the relay's restart", async ({ relay, devices, clock, faults }) => {
    faults.inject({ kind: "relay.crash", for: "5s" });
    await clock.advance("1s");
    expect([relay.online, relay.connections.agent]).toEqual([false, 0]);
    await clock.advance("60s");
    expect([relay.online, devices.every(({ online }) => online)]).toEqual([true, true]);
  });

  test("refuses an unknown fault", ({ faults }) => {
    expect(() => faults.inject({ kind: "net.cut", devices: "pumps", for: "1s" })).toThrow(
      /unknown group/,
    );
  });

  test("gives up on a promise that never settles", async ({ clock }) => {
    const never = new Promise(() => undefined);
    await expect(clock.until(never, "1m")).rejects.toThrow(
      /nothing settled within 1m of virtual time \(.* after the start, seed 1\)/,
    );
  });
});

describe("a faulty fleet", () => {
  const devices = [{ group: "echoes", count: 2, kind: "echo" as const }];

  test("is refused with the member that was meant, if one is mistyped", () => {
    expect(() => new VirtualFleet({ devcies: devices } as never, ".")).toThrow(
      /unknown key "devcies" \(did you mean "devices"\?\)/,
    );
  });

  test("rejects a call with an error that has the test's own line", async () => {
    const fleet = new VirtualFleet({ devices }, ".");
    await fleet.start();
    const [echo] = fleet.devices;
    const failed = await fleet.client
      .call(echo as never, "no.such")
      .catch((error: Error) => error as Error);
    expect(failed).toMatchObject({ code: "REMOTE" });
    expect((failed as Error).stack).toContain("fleet-test.test.ts");
    fleet.stop();
  });

  test("says how to wait for a call of the SDK's own handle", async () => {
    const fleet = new VirtualFleet({ devices }, ".");
    await fleet.start();
    const { client, clock } = fleet;
    const handle = client.agent(fleet.devices[0] as never);
    const warn = vi.spyOn(console, "warn").mockReturnValue();
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => {
      vi.useRealTimers();
      warn.mockRestore();
    });
    const bare = handle.call("echo", { n: 1 });
    vi.advanceTimersByTime(1_000);
    expect(warn.mock.lastCall?.[0]).toContain(
      'await clock.until(client.agent(device).call("echo"))',
    );
    expect(await clock.until(bare)).toEqual({ n: 1 });
    await clock.until(client.agent(fleet.devices[0] as never).call("echo", {}));
    vi.advanceTimersByTime(1_000);
    expect(warn).toHaveBeenCalledOnce();
    fleet.stop();
  });

  test("reports devices that do not come online, with the latest events", async () => {
    const fleet = new VirtualFleet({ devices, network: { latency: "10m" } }, ".");
    await expect(fleet.start()).rejects.toThrow(
      /not online 5m after the start.*seed 1[\s\S]*no connection in time/,
    );
  });

  test("fails at its end if an oracle is violated", async () => {
    const fleet = new VirtualFleet({ devices }, ".");
    await fleet.start();
    const world = Reflect.get(fleet, "world") as World;
    world.violate("bounds", "planted");
    await expect(fleet.clock.advance("1s")).rejects.toThrow(/the oracle "bounds": planted/);
    expect(() => fleet.stop()).toThrow(/the oracle "bounds": planted/);
  });

  test("refuses invalid options, with the reason", () => {
    const wrong = [{ group: "pumps", count: 1, program: "./missing.js" }];
    expect(() => new VirtualFleet({ devices: wrong }, ".")).toThrow(/there is no file .*missing/);
  });
});

describe("its seed", () => {
  const times: number[] = [];
  for (const seed of [7, 7, 8]) {
    const seeded = fleetTest.extend({
      fleet: { seed, devices: [{ group: "echoes", count: 20, kind: "echo" as const }] },
    });
    seeded(`${seed} is that of all that happens`, async ({ devices: [echo], client, clock }) => {
      for (let n = 0; n < 5; n++) await client.call(echo as never, "echo", { n });
      times.push(clock.now());
    });
  }
  fleetTest("decides when", () => {
    expect(times[1]).toBe(times[0]);
    expect(times[2]).not.toBe(times[0]);
  });
});
