import type { AgentCoreOptions } from "@blindrelay/agent-sdk";
import { isForward, type Version, type X25519 } from "@blindrelay/protocol/crypto";
import { ForwardAgentSessions } from "@blindrelay/protocol/forward-agent";

/** To provision a device with, from 32 random bytes; null: its packet version needs none. */
export const seedOf = (version: Version, random: (length: number) => Uint8Array) =>
  isForward(version) ? random(32) : null;

/** `seed`: of this start, copied; undefined: a device of packet version "1" or "2". */
export const forwardSessions = (
  seed: Uint8Array | undefined,
  x25519: X25519,
  deviceKey: Uint8Array | null = null,
): AgentCoreOptions["forward"] =>
  seed &&
  ((options) => new ForwardAgentSessions(options, { x25519, seed: seed.slice(), deviceKey }));
