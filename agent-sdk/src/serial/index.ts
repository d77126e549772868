export type { CarrierCounters, CarrierOptions, PausableLink } from "./carrier.ts";
export { SerialCarrier } from "./carrier.ts";
export { ReceiveWindow, SendWindow } from "./flow.ts";
export type { Checksum, FrameCounters } from "./frames.ts";
export { encodeFrame, FrameReader, frameBytes, plainChecksum } from "./frames.ts";
export type { SerialLinksOptions } from "./links.ts";
export { SerialLinks } from "./links.ts";
export type { Hello } from "./wire.ts";
export * as wire from "./wire.ts";
