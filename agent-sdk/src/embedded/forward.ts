/**
 * Packet versions "3" and "4" on small devices: `startAgent({ forward, … })`. A module of its own,
 * so that a project without it contains neither X25519 nor its sessions.
 */

import { deviceKeyProblem } from "@blindrelay/protocol/crypto";
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { type Forward, forwardSessions } from "../core/forward.ts";

/** Throws an Error for a device key that is none, and without a seed. */
export const forward: Forward = (version, seed, deviceKey) => {
  const problem = deviceKeyProblem(version, deviceKey);
  if (problem !== null) throw new Error(`deviceKey: ${problem}`);
  return forwardSessions(version, { x25519: nobleX25519, seed, deviceKey });
};
