/**
 * The sessions of packet versions "3" and "4", for the runtimes that have X25519; boards without it
 * do not load this file.
 *
 * [portable]
 */
import type { Version, X25519 } from "@blindrelay/protocol/crypto";
import { fromBase64url, isForward } from "@blindrelay/protocol/crypto";
import { ForwardAgentSessions } from "@blindrelay/protocol/forward-agent";
import type { AgentSessions, AgentSessionsOptions } from "@blindrelay/protocol/session";

/** What an agent has beside its secret under versions "3" and "4". */
export interface ForwardParts {
  readonly x25519: X25519;
  /** Of this start, as `raiseBootCount` returned it; undefined: the storage has none. */
  readonly seed: Uint8Array | undefined;
  /** The private half of the pinned key, base64url of 32 bytes; undefined: there is none. */
  readonly deviceKey: string | undefined;
}

/** Why an agent may not start under `version` without a seed. */
export const NO_SEED =
  'packet versions "3" and "4" need a seed beside the boot count: provision this agent with a new agent_token';

type MakeSessions = ((options: AgentSessionsOptions) => AgentSessions) | undefined;

/** The start option `forward` of small devices: `forwardSessions` with an X25519. */
export type Forward = (
  version: Version,
  seed: Uint8Array | undefined,
  deviceKey: string | undefined,
) => MakeSessions;

/** For AgentCoreOptions; undefined under "1" and "2". Throws without a seed. */
export const forwardSessions = (version: Version, parts: ForwardParts): MakeSessions => {
  if (!isForward(version)) return undefined;
  const seed = parts.seed;
  if (seed === undefined) throw new Error(NO_SEED);
  const deviceKey = parts.deviceKey === undefined ? null : fromBase64url(parts.deviceKey);
  return (options) =>
    new ForwardAgentSessions(options, {
      x25519: parts.x25519,
      seed: seed,
      deviceKey: deviceKey,
    });
};
