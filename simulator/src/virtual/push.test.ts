/** A program that is pushed to a device of the virtual world: kept, or gone with its trial. */
import { expect } from "vitest";
import type { FleetClient, FleetClock, FleetDevice } from "../fleet/fleet.ts";
import { fleetTest } from "../vitest/index.ts";

const NEXT = "../testing/greeter-2.js";
const BAD = "../../library/programs/bad-image.js";
const AGAIN = { idempotent: true };

const stateOf = (device: FleetDevice, client: FleetClient, clock: FleetClock): Promise<unknown> =>
  clock.until(client.agent(device).call("system.push", {}, AGAIN));

const test = fleetTest.extend({
  fleet: { devices: [{ group: "greeters", count: 1, program: "../testing/greeter.js" }] },
});

test("is kept once it answers, and runs after the next restart", async ({
  devices: [one],
  client,
  clock,
  faults,
}) => {
  const greeter = one as NonNullable<typeof one>;
  faults.inject({ kind: "device.update", program: NEXT }, greeter);
  await clock.advance("20s");
  expect(await stateOf(greeter, client, clock)).toMatchObject({ trial: null });
  faults.inject({ kind: "device.reboot" }, greeter);
  await clock.advance("10s");
  expect(await client.call(greeter, "which", undefined, AGAIN)).toBe(2);
  expect(greeter.boots).toBe(3);
});

test("is gone if it cannot start, and the device says why", async ({
  devices: [one],
  client,
  clock,
  faults,
}) => {
  const greeter = one as NonNullable<typeof one>;
  faults.inject({ kind: "device.update", program: BAD }, greeter);
  await clock.advance("20s");
  expect(await client.call(greeter, "which", undefined, AGAIN)).toBe(1);
  const failed = { reason: expect.stringContaining("does not answer") };
  expect(await stateOf(greeter, client, clock)).toMatchObject({ failed });
  expect((await client.logs(greeter)).restart.reason).toBe("push");
});

test("is gone at the end of its trial if nobody can confirm it", async ({
  devices: [one],
  client,
  clock,
  faults,
}) => {
  const greeter = one as NonNullable<typeof one>;
  faults.inject({ kind: "device.update", program: NEXT, trial: "40s" }, greeter);
  while (greeter.boots === 1) await clock.advance("100ms");
  faults.inject({ kind: "relay.crash", for: "60s" });
  await clock.advance("3m");
  expect(await client.call(greeter, "which", undefined, AGAIN)).toBe(1);
});

test("is gone with the storage", async ({ devices: [one], client, clock, faults }) => {
  const greeter = one as NonNullable<typeof one>;
  faults.inject({ kind: "device.update", program: NEXT }, greeter);
  await clock.advance("20s");
  faults.inject({ kind: "device.reboot", storage: "lose" }, greeter);
  await clock.advance("20s");
  expect(await client.call(greeter, "which", undefined, AGAIN)).toBe(1);
});

test("that is not marked as started, for the power goes at each start, leaves the old one", async ({
  devices: [one],
  client,
  clock,
  faults,
}) => {
  const greeter = one as NonNullable<typeof one>;
  faults.inject({ kind: "device.update", program: NEXT, trial: "20s" }, greeter);
  await clock.advance("1s");
  for (let cut = 0; cut < 20; cut++) {
    faults.inject({ kind: "storage.torn", for: "1s" }, greeter);
    await clock.advance("1s");
  }
  await clock.advance("90s");
  expect([1, 2]).toContain(await client.call(greeter, "which", undefined, AGAIN));
});

for (let seed = 1; seed <= 12; seed++) {
  const seeded = test.extend({
    fleet: {
      seed,
      devices: [{ group: "greeters", count: 1, program: "../testing/greeter.js" }],
    },
  });
  seeded(
    `leaves the old or the new one after cuts at any time (seed ${seed})`,
    async ({ devices: [one], client, clock, faults }) => {
      const greeter = one as NonNullable<typeof one>;
      let runs = 1;
      for (let cut = 0; cut < 6; cut++) {
        const program = runs === 1 ? NEXT : "../testing/greeter.js";
        faults.inject({ kind: "device.update", program, trial: "20s" }, greeter);
        await clock.advance((seed * 397 + cut * 1723) % 6000);
        faults.inject(
          { kind: cut % 2 === 0 ? "storage.torn" : "device.reboot", for: "5s" },
          greeter,
        );
        await clock.advance("90s");
        const found = await client.call<number>(greeter, "which", undefined, AGAIN);
        expect([1, 2]).toContain(found);
        expect(await stateOf(greeter, client, clock)).toMatchObject({ trial: null });
        runs = found;
      }
    },
  );
}
