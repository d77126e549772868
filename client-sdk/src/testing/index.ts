/** For tests of other packages, in this repository only: the client without its promises. */
export { ClientCore } from "../core/client-core.ts";
export type { Peer } from "../core/peer.ts";
