/**
 * A device in memory, for the unit tests of an app that calls devices: the real agent core with a
 * device program, the relay's real hub and the public client, in the test's own process. Packets
 * are sealed and opened as usual; there is no socket, no file and no waiting. Runs on Node and in
 * browsers.
 */
export type { AgentRecord, Directory } from "./directory.ts";
export type { FakeDevice } from "./fake-device.ts";
export { type FakeDeviceOptions, MemoryRelay, type PeerLink } from "./memory-relay.ts";
