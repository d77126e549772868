/**
 * A virtual fleet in any test runner, such as node:test or Jest, or in a script. Vitest's `test`
 * with a fleet is `@blindrelay/simulator/vitest`.
 */
export type {
  FleetClient,
  FleetClock,
  FleetDevice,
  FleetFaults,
  FleetOptions,
  FleetRelay,
} from "./fleet.ts";
export { VirtualFleet } from "./fleet.ts";
export { type PlayOptions, type Seeds, withFleet } from "./with-fleet.ts";
