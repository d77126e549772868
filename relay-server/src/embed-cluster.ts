/**
 * `@blindrelay/relay-server/cluster`: what makes several relays of `./core` one, on Node only, over
 * a bus and notices of anyone who runs them. Exempt from semantic versioning.
 */
export { Cluster } from "./bus/cluster.ts";
export type { Delivery, Transport } from "./bus/transport.ts";
export { UsernameLockout } from "./control/username-lockout.ts";
export type { Notice } from "./store/notices.ts";
