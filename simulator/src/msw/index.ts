/**
 * A relay for the tests of a browser app: msw handlers for its REST API and its WebSocket, in front
 * of a relay in memory whose devices run real device programs. msw cannot intercept the `ws`
 * package, which the client uses on Node; there, use `MemoryRelay.connect`.
 */
export { MemoryRelay } from "../fake-device/memory-relay.ts";
export { type RelayHandlersOptions, relayHandlers } from "./handlers.ts";
