/** Programs that touch hardware, on the bundled stubs and on those of a file. */
import { expect } from "vitest";
import { fleetTest } from "../vitest/index.ts";

const lamps = [{ group: "lamps", count: 2, program: "../testing/lamp.js" }];
const test = fleetTest.extend({ fleet: { devices: lamps } });

test("a board's program runs, each device with pins of its own", async ({
  devices: [one, two],
  client,
  clock,
}) => {
  expect(await client.call(one as never, "lamp.set", { on: true })).toEqual({ on: 1 });
  const { stubs } = one as NonNullable<typeof one>;
  expect([stubs.digitalRead(stubs.LED1), two?.stubs.digitalRead("LED1")]).toEqual([1, 0]);
  stubs.digitalWrite("BTN1", 1);
  await clock.advance(10);
  expect(stubs.digitalRead("LED1")).toBe(0);
  stubs.analogWrite("A1", 0.25);
  expect(await client.call(one as never, "lamp.light")).toEqual({ light: 0.25 });
});

fleetTest.extend({ fleet: { devices: lamps, stubs: "../testing/dark.js" } })(
  "a sensor fails by the seed and the time of its file's stubs, which see a reboot",
  async ({ devices: [lamp], client, clock, faults }) => {
    const read = () => client.call<{ light: number | null }>(lamp as never, "lamp.light");
    const found = [];
    for (let n = 0; n < 12; n++) found.push((await read()).light);
    expect(found).toContain(null);
    expect(Math.max(...found.map(Number))).toBeGreaterThan(8);
    faults.inject({ kind: "device.reboot" }, lamp as never);
    await clock.advance("20s");
    const after = { light: null as number | null };
    while (after.light === null) {
      const again = { idempotent: true };
      Object.assign(after, await client.call(lamp as never, "lamp.light", undefined, again));
    }
    expect(after.light).toBeGreaterThan(12);
    await clock.advance("60s");
    await expect(read()).rejects.toMatchObject({ remote: { message: "no sensor" } });
  },
);
