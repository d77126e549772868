export type { LinksUnderTest, RelaySide } from "./link.ts";
export { linkConformance } from "./link.ts";
export type { StorageUnderTest } from "./storage.ts";
export { storageConformance } from "./storage.ts";
export type { TimerUnderTest } from "./timer.ts";
export { timerConformance } from "./timer.ts";
