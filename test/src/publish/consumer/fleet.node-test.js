import assert from "node:assert";
import test from "node:test";
import { withFleet } from "@blindrelay/simulator/fleet";

const devices = [{ group: "lamps", count: 3, program: "./program.js" }];
const steps = [
  { call: "lamp.state", as: "first" },
  { call: "lamp.state", check: "answer.on == first.on" },
];

test("a lamp forgets its light with its power, whoever else asks for it", () =>
  withFleet(
    {
      devices,
      loads: [{ devices: "lamps", every: "20s", idempotent: true, steps }],
      seeds: "1..3",
    },
    async ({ client, clock, devices: [lamp], faults }) => {
      await client.call(lamp, "lamp.set", { on: true });
      await clock.advance("30s");
      faults.inject({ kind: "device.reboot" }, lamp);
      await clock.advance("1m");
      const state = await client.call(lamp, "lamp.state", undefined, { idempotent: true });
      assert.deepEqual(state, { on: false });
    },
  ));
