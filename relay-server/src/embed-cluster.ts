/**
 * `@blindrelay/relay-server/cluster`: combines several relays of `./core` into a cluster, on Node
 * only, with a bus and notices provided by the caller. Exempt from semantic versioning.
 */
export { Cluster } from "./bus/cluster.ts";
export type { Delivery, Transport } from "./bus/transport.ts";
export { UsernameLockout } from "./control/username-lockout.ts";
export type { Notice } from "./store/notices.ts";
