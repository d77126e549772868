/**
 * Vitest's `test` with a virtual fleet: `relay`, `devices`, `client`, `clock` and `faults` as
 * fixtures, new for each test. A violation of an oracle fails the test.
 */
import { dirname } from "node:path";
import { type TestAPI, test } from "vitest";
import {
  type FleetClient,
  type FleetClock,
  type FleetDevice,
  type FleetFaults,
  type FleetOptions,
  type FleetRelay,
  VirtualFleet,
} from "../fleet/fleet.ts";
import { type Seeds, withFleet } from "../fleet/with-fleet.ts";

export interface FleetFixtures {
  /** What the fleet consists of; set it with `fleetTest.extend({ fleet: { devices: [ … ] } })`. */
  fleet: FleetOptions;
  /** The running fleet itself; the fixtures below are its parts. */
  virtualFleet: VirtualFleet;
  relay: FleetRelay;
  /** All online when the test begins, in the order of `fleet.devices`. */
  devices: readonly FleetDevice[];
  client: FleetClient;
  /** As many as `fleet.clients` says; `client` is the first. */
  clients: readonly FleetClient[];
  /**
   * Plays a test with a new fleet of the same options for each seed, such as
   * `await overSeeds("1..50", async ({ client, clock, devices, faults }) => { … })`.
   */
  overSeeds: (seeds: Seeds, play: (fleet: VirtualFleet) => Promise<void>) => Promise<void>;
  clock: FleetClock;
  faults: FleetFaults;
}

/** The seed of all tests that set none, to repeat a failure or to look for others. */
const SEED = "BLINDRELAY_SEED";

/**
 * `test` for device programs. Paths of programs are relative to the test file; with the same
 * seed, a test runs identically to the microsecond.
 *
 * @example
 * const test = fleetTest.extend({
 *   fleet: { devices: [{ group: "pumps", count: 3, program: "./pump.js" }] },
 * });
 * test("a pump forgets its opening", async ({ client, clock, devices, faults }) => {
 *   const [pump] = devices;
 *   await client.call(pump, "pump.set", { percent: 40 });
 *   faults.inject({ kind: "device.reboot" }, pump);
 *   await clock.advance("1m");
 *   const state = await client.call(pump, "pump.state", undefined, { idempotent: true });
 *   expect(state).toMatchObject({ percent: 0 });
 * });
 */
export const fleetTest: TestAPI<FleetFixtures> = test.extend<FleetFixtures>({
  fleet: { devices: [{ group: "device", count: 1, kind: "echo" }] },
  virtualFleet: async ({ fleet, task }, use) => {
    const seed = process.env[SEED];
    const options = seed === undefined ? fleet : { seed: Number(seed), ...fleet };
    const running = new VirtualFleet(options, dirname(task.file.filepath));
    await running.start();
    await use(running);
    running.stop();
  },
  relay: ({ virtualFleet }, use) => use(virtualFleet.relay),
  devices: ({ virtualFleet }, use) => use(virtualFleet.devices),
  client: ({ virtualFleet }, use) => use(virtualFleet.client),
  clients: ({ virtualFleet }, use) => use(virtualFleet.clients),
  overSeeds: ({ fleet, task }, use) =>
    use((seeds, play) => withFleet({ ...fleet, seeds, folder: dirname(task.file.filepath) }, play)),
  clock: ({ virtualFleet }, use) => use(virtualFleet.clock),
  faults: ({ virtualFleet }, use) => use(virtualFleet.faults),
});
