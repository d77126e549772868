export type { LogAnswer as DeviceLogs } from "@blindrelay/protocol";
export type {
  FleetClient,
  FleetClock,
  FleetDevice,
  FleetFaults,
  FleetOptions,
  FleetRelay,
} from "../fleet/fleet.ts";
export { type FleetFixtures, fleetTest } from "./fleet-test.ts";
