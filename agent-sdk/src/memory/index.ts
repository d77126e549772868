export type { MemoryNetworkOptions } from "./link.ts";
export { memoryNetwork, RelayEnd } from "./link.ts";
export { seededRandom } from "./random.ts";
export type { Medium } from "./storage.ts";
export { CuttableStorage, MEDIA, MemoryStorage, PowerCut } from "./storage.ts";
export { ManualTimer } from "./timer.ts";
