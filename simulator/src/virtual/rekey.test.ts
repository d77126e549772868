/** A secret that is changed over the air in the virtual world. */
import { expect, test as plain } from "vitest";
import type { FleetClient, FleetDevice } from "../fleet/fleet.ts";
import type { Scenario } from "../scenario/schema.ts";
import { fleetTest } from "../vitest/index.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

const AGAIN = { idempotent: true };

const fleetOf = (seed: number, version: "1" | "2" | "3" | "4") => ({
  seed,
  devices: [{ group: "lamps", count: 1, kind: "echo" as const, packet_version: version }],
});

const answers = async (device: FleetDevice, client: FleetClient): Promise<void> =>
  expect(await client.call(device, "echo", { n: 1 }, AGAIN)).toEqual({ n: 1 });

const test = fleetTest.extend({ fleet: fleetOf(1, "1") });

test("clients call the device under its new secret, and it keeps that over restarts", async ({
  devices: [one],
  client,
  clock,
  faults,
}) => {
  const lamp = one as NonNullable<typeof one>;
  const before = client.agent(lamp);
  faults.inject({ kind: "device.rekey", for: "0s" }, lamp);
  await clock.advance("20s");
  await answers(lamp, client);
  faults.inject({ kind: "device.reboot" }, lamp);
  await clock.advance("10s");
  await answers(lamp, client);
  const outcome = clock.until(before.call("echo", {}, { ...AGAIN, timeoutMs: 5_000 }));
  await expect(outcome).rejects.toMatchObject({ code: "TIMED_OUT" });
});

for (let seed = 1; seed <= 12; seed++) {
  const version = (["1", "2", "3", "4"] as const)[seed % 4] as "1";
  const seeded = fleetTest.extend({ fleet: fleetOf(seed, version) });
  seeded(
    `it answers after cuts at any time, and two owners at once (version ${version}, seed ${seed})`,
    async ({ devices: [one], client, clock, faults }) => {
      const lamp = one as NonNullable<typeof one>;
      for (let cut = 0; cut < 6; cut++) {
        faults.inject({ kind: "device.rekey" }, lamp);
        if (cut > 3) faults.inject({ kind: "device.rekey", for: "12m" }, lamp);
        await clock.advance((seed * 397 + cut * 1723) % 6000);
        const kind = cut % 2 === 0 ? "storage.torn" : "device.reboot";
        faults.inject({ kind, for: "5s", ...(cut === 2 ? { boot: true } : {}) }, lamp);
        if (cut === 3) faults.inject({ kind: "storage.full", for: "20s" }, lamp);
        await clock.advance(cut > 3 ? "20m" : "120s");
        await answers(lamp, client);
      }
    },
  );
}

plain("what a subscriber misses until it has the new secret is not lost in silence", async () => {
  const scenario: Scenario = {
    name: "a change in disorder",
    duration: "97s",
    devices: [{ group: "g", count: 6, kind: "busy" }],
    drivers: [{ kind: "subscriber", devices: "g" }],
    faults: [
      { at: "28s", kind: "net.delay", latency: "1092ms", for: "25s", share: "50%" },
      { at: "30s", kind: "device.rekey", for: "20s" },
      { at: "30s", kind: "relay.hostile", attack: "reorder", messages: "16%", for: "20s" },
    ],
  };
  const programs = loadPrograms(scenario, ".");
  for (const seed of [19, 32]) {
    const { report } = await runVirtual(scenario, { seed, crypto: "model", programs });
    expect(report.oracles.filter(({ ok }) => !ok)).toEqual([]);
  }
});
