/** Devices of packet versions "3" and "4" in the virtual world. */
import { expect, test } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import type { Fault } from "../scenario/schema.ts";
import { loadPrograms } from "./programs.ts";
import { runVirtual } from "./run.ts";

const DEVICES = 6;

/** In every way, also with the models of cryptography; and the packet versions on the wire. */
const play = async (faults: Fault[]) => {
  const { scenario } = checkScenario(
    {
      name: "forward",
      duration: "3m",
      same: true,
      devices: [
        { group: "threes", count: DEVICES / 2, kind: "echo", packet_version: "3" },
        { group: "fours", count: DEVICES / 2, kind: "valve", packet_version: "4" },
      ],
      clients: [
        { devices: "threes", every: "20s" },
        { devices: "fours", every: "5s" },
      ],
      faults,
      allow: faults.length > 0 ? [{ rate: "50%" }] : [],
    },
    ".",
  );
  const versions = new Set<string>();
  const watch = (_what: string, _who: string, text: string): void => {
    const version = /\\?"v\\?":\\?"(.)/.exec(text)?.[1];
    if (version !== undefined) versions.add(version);
  };
  const programs = loadPrograms(scenario, ".");
  const { report, world } = await runVirtual(scenario, { seed: 1, programs, watch });
  expect(report.stopped).toBeNull();
  expect(report.oracles.filter(({ ok }) => !ok)).toEqual([]);
  expect(report.oracles.map(({ name }) => name)).toEqual(
    expect.arrayContaining(["forward", "same"]),
  );
  expect([...versions].sort()).toEqual(["3", "4"]);
  return { report, devices: world.devices };
};

test("they answer every call, with a pinned key and without one", async () => {
  const { report, devices } = await play([]);
  expect([report.ok, report.calls.failed]).toEqual([true, 0]);
  const pinned = devices.filter(({ agentOptions }) => agentOptions.deviceKey !== undefined);
  expect(pinned.length).toBeGreaterThan(0);
  expect(pinned.length).toBeLessThan(DEVICES);
});

test("they come back from restarts whose power fails while the boot count is raised", async () => {
  const torn = { kind: "storage.torn", boot: true } as const;
  const { report, devices } = await play([
    { ...torn, at: "30s", for: "20s" },
    { ...torn, at: "31s", for: "20s" },
    { at: "100s", kind: "device.reboot", storage: "lose", devices: "fours" },
  ]);
  expect(report.agents.connected).toBe(DEVICES);
  // Each of the first two faults restarts them, and each cut does once more.
  expect(Math.max(...devices.map(({ boots }) => boots))).toBeGreaterThanOrEqual(4);
  expect(report.calls.ok).toBeGreaterThan(50);
});
