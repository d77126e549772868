/** What a device program stores, in the virtual world: over reboots, torn writes, a full medium. */
import { describe, expect } from "vitest";
import { fleetTest } from "../vitest/index.ts";

const test = fleetTest.extend({
  fleet: { devices: [{ group: "keepers", count: 1, program: "../testing/keeper.js" }] },
});

describe("the storage of a simulated device", () => {
  test("survives a reboot, unless the fault loses it", async ({
    devices: [one],
    client,
    clock,
    faults,
  }) => {
    const keeper = one as NonNullable<typeof one>;
    for (const count of [1, 2]) expect(await client.call(keeper, "add")).toEqual({ count });
    faults.inject({ kind: "device.reboot" }, keeper);
    await clock.advance("30s");
    const found = await client.call(keeper, "count", undefined, { idempotent: true });
    expect(found).toEqual({ count: 2 });
  });

  for (let seed = 1; seed <= 4; seed++) {
    const seeded = test.extend({
      fleet: { seed, devices: [{ group: "keepers", count: 1, program: "../testing/keeper.js" }] },
    });
    seeded(
      `has the old or the new text after a torn write (seed ${seed})`,
      async ({ devices: [one], client, clock, faults }) => {
        const keeper = one as NonNullable<typeof one>;
        for (let n = 0; n < 3; n++) await client.call(keeper, "add");
        faults.inject({ kind: "storage.torn", for: "5s" }, keeper);
        await expect(
          client.call(keeper, "add", undefined, { timeoutMs: 3000 }),
        ).rejects.toMatchObject({ code: "TIMED_OUT" });
        await clock.advance("30s");
        expect(keeper.boots).toBe(2);
        const { count } = await client.call<{ count: number }>(keeper, "count");
        expect([3, 4]).toContain(count);
        expect(await client.call(keeper, "add")).toEqual({ count: count + 1 });
      },
    );
  }

  test("throws while the medium is full, and keeps what it has", async ({
    devices: [one],
    client,
    clock,
    faults,
  }) => {
    const keeper = one as NonNullable<typeof one>;
    await client.call(keeper, "add");
    faults.inject({ kind: "storage.full", for: "10s" }, keeper);
    await expect(client.call(keeper, "add")).rejects.toMatchObject({
      remote: { message: "no space on the medium" },
    });
    faults.inject({ kind: "device.reboot" }, keeper);
    await clock.advance("40s");
    const found = await client.call(keeper, "count", undefined, { idempotent: true });
    expect(found).toEqual({ count: 1 });
    expect(await client.call(keeper, "add")).toEqual({ count: 2 });
  });
});
