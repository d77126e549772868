/** For tests of other packages, in this repository only: the hub and a store in memory. */

export { Hub } from "../core/hub.ts";
export { TICK_MS } from "../core/limits/limits.ts";
export { Lockout } from "../core/limits/lockout.ts";
export type { AuthRequest } from "../core/ports.ts";
export { MemoryStore } from "../core/testing/test-hub.ts";
