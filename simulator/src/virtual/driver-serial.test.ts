/** Runs in which a serial port's bytes were once lost, doubled or misreported. */
import { expect, test } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

const bridge = {
  devices: [{ group: "g0", count: 1, kind: "bridge" }],
  drivers: [{ kind: "serial", devices: "g0" }],
};
const reorder = { kind: "relay.hostile", attack: "reorder" };

test.each([
  [
    "what was sent on an earlier stream is not told as not sent",
    1_461_116_428,
    {
      duration: "213s",
      clients: [{ name: "c0", devices: "g0", every: "10512ms", from: "21s" }],
      faults: [
        { kind: "store.away", at: "16s", for: "17s" },
        { ...reorder, at: "183s", for: "13s", messages: "93%" },
      ],
    },
  ],
  [
    "a purge gives no number to others that the bridge still counts on",
    1_691_910_623,
    { duration: "130s", faults: [{ ...reorder, at: "126s", for: "14s", messages: "66%" }] },
  ],
])("%s", async (name, seed, more) => {
  const { scenario } = checkScenario({ name, ...bridge, ...more, allow: [{ rate: "100%" }] }, ".");
  const programs = loadPrograms(scenario, ".");
  const { violation } = await runVirtual(scenario, { seed, programs, crypto: "model" });
  expect(violation).toBeNull();
});
