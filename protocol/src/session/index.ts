export type {
  AgentSessionLimits,
  AgentSessionsOptions,
  AgentVerdict,
  Farewell,
  RefusalReason,
} from "./agent.ts";
export { AgentSessions, DEFAULT_AGENT_LIMITS } from "./agent.ts";
export { LOOKUPS, OPENINGS } from "./buckets.ts";
export type {
  ClientEffect,
  ClientRefusal,
  ClientSessionOptions,
  ClientState,
  ClientTimings,
} from "./client.ts";
export { ClientSession, DEFAULT_CLIENT_TIMINGS, FIRST_PING_ID } from "./client.ts";
export { CLOSE_METHOD, CLOSE_NOTICE } from "./closing.ts";
export { SmallAgentSessions } from "./small-agent.ts";
