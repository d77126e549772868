/** Preloaded on the chip: what its own modules take of the SDK, none of which keeps anything. */
export { startWithPushes } from "../../src/embedded/push.ts";
export { valueStorage } from "../../src/moddable/storage.ts";
export { moddableTimer } from "../../src/moddable/timer.ts";
export { plainChecksum } from "../../src/serial/frames.ts";
export { SerialLinks } from "../../src/serial/links.ts";
export { FrameReader } from "../../src/serial/reader.ts";
export { maxBody } from "../../src/serial/wire.ts";
