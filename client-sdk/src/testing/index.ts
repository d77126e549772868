/** For tests of other packages, only in this repository: the client without its promises. */
export { ClientCore } from "../core/client-core.ts";
export type { Peer } from "../core/peer.ts";
