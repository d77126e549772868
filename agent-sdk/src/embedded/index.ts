export type { AgentCore } from "../core/agent-core.ts";
export { type KeepLog, keepLog } from "../core/give-log.ts";
export { withStorage } from "../core/give-storage.ts";
export type { AgentStatus } from "../core/link.ts";
export { messageBytes, SMALL_MAX_NESTING } from "./bounded.ts";
export type { EmbeddedPorts, Host, HostEvents, RuntimePorts } from "./host.ts";
export { embeddedPorts } from "./host.ts";
export type { StartOptions } from "./start.ts";
export { provisionAgent, startAgent } from "./start.ts";
