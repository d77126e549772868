export type { CarrierCounters, CarrierOptions, PausableLink } from "./carrier.ts";
export { SerialCarrier } from "./carrier.ts";
export type { Checksum } from "./frames.ts";
export { encodeFrame, plainChecksum } from "./frames.ts";
export type { SerialLinksOptions } from "./links.ts";
export { SerialLinks } from "./links.ts";
export type { FrameCounters } from "./reader.ts";
export { FrameReader } from "./reader.ts";
export * as wire from "./wire.ts";
