/**
 * Limits of an agent's sessions (AgentSessionLimits): those of a small device, and what a start may
 * change.
 *
 * [portable]
 */
import type { AgentSessionLimits } from "@blindrelay/protocol/session";

/** For a device with little memory and a slow processor. */
export const SMALL_AGENT_LIMITS: AgentSessionLimits = {
  maxSessions: 8,
  unheldPerSecond: 4,
  unheldBurst: 16,
  epochSessions: 16,
};

/** More would be no limit: a table of sessions is searched from its start. */
const MAX_LIMIT = 65536;

/** The defaults of a runtime, with a start's own; throws if one of these makes no sense. */
export const limitsOf = (
  defaults: AgentSessionLimits,
  own: Partial<AgentSessionLimits> | undefined,
): AgentSessionLimits => {
  const limits = Object.assign({}, defaults, own);
  for (const name of ["maxSessions", "unheldPerSecond", "unheldBurst", "epochSessions"]) {
    const value: unknown = (limits as unknown as { readonly [name: string]: unknown })[name];
    if (typeof value !== "number" || !(value >= 1 && value <= MAX_LIMIT) || value % 1 !== 0)
      throw new Error(`limits: ${name} is a whole number from 1 to ${MAX_LIMIT}`);
  }
  return limits;
};
