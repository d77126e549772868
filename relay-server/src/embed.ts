/**
 * `@blindrelay/relay-server/core`: the relay without sockets, REST or a store, for callers that run
 * it with their own clock, such as the simulator. It runs in browsers too, as part of fake devices.
 * Exempt from semantic versioning.
 */
export type { Connection } from "./core/connections/connection.ts";
export type { Counters } from "./core/counters.ts";
export type { Hub, HubStats } from "./core/hub.ts";
export {
  DEFAULT_LIMITS,
  type HubLimits,
  QUEUED_BYTES_PER_USER,
  TICK_MS,
} from "./core/limits/limits.ts";
export { Lockout } from "./core/limits/lockout.ts";
export type { AgentReport, ClientType, Frame, HubLink } from "./core/link.ts";
export type { AuthRequest, AuthResult, HubLookups, WriteBehind } from "./core/ports.ts";
export { type DriverTimer, type HubParts, type RunningHub, runHub } from "./ws/hub-driver.ts";
