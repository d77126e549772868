export type { LinkState, LogLine, RestartReason } from "@blindrelay/protocol";
export type { Program } from "./core/agent.ts";
export { Agent } from "./core/agent.ts";
export type { AgentCoreOptions, AgentCounters, AgentPorts } from "./core/agent-core.ts";
export { AgentCore } from "./core/agent-core.ts";
export type { BootCountProblem, BootCountResult } from "./core/bootcount.ts";
export { bootCountMarker, provisionBootCount, raiseBootCount } from "./core/bootcount.ts";
export type { Credentials } from "./core/credentials.ts";
export type { CallContext, Handler } from "./core/dispatch.ts";
export { giveStorage, withStorage } from "./core/give-storage.ts";
export { SMALL_AGENT_LIMITS } from "./core/limits.ts";
export type { AgentStatus, LinkCounters } from "./core/link.ts";
export type { DeviceLog, LogOptions } from "./core/log.ts";
export {
  endLog,
  keepingLog,
  LARGE_LOG_BYTES,
  openLog,
  SMALL_LOG_BYTES,
  serveLog,
} from "./core/log.ts";
export { DeviceStorage } from "./core/storage.ts";
export type * from "./ports.ts";
