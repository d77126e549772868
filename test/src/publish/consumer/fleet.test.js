import { fleetTest } from "@blindrelay/simulator/vitest";
import { expect } from "vitest";

const test = fleetTest.extend({
  fleet: { devices: [{ group: "lamps", count: 3, program: "./program.js" }] },
});

test("a lamp forgets its light with its power", async ({ devices, client, clock, faults }) => {
  const [lamp] = devices;
  await client.call(lamp, "lamp.set", { on: true });
  faults.inject({ kind: "device.reboot" }, lamp);
  await clock.advance("1m");
  const state = await client.call(lamp, "lamp.state", undefined, { idempotent: true });
  expect(state).toEqual({ on: false });
});
