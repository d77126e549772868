/** The oracles of the virtual world, and what each checks. */
import { isForward } from "@blindrelay/protocol/crypto";
import type { Scenario } from "../scenario/schema.ts";

export const ORACLES = {
  nonce: "no key and nonce seals two plaintexts",
  forward: "what a device still has leads to no earlier session or start",
  once: "no packet is accepted twice",
  delivery: "a packet that a client sealed is accepted, whatever else is sent in between",
  "exactly-once": "a call that was answered was executed exactly once, and none after its deadline",
  blind: "the relay holds, logs and stores nothing readable",
  revoked: "nobody acts after their revocation was acknowledged",
  presence: "presence agrees with the truth",
  bounds: "queues, tables and counts stay within their bounds",
  told: "nothing is left unsaid: what is not delivered is refused, and clients hear who comes and goes",
  events: "no event is lost in silence, and streams are whole",
  serial: "no byte of a bridged port comes twice, or out of its place, or is lost in silence",
  "one-link": "an agent has one link over all nodes",
  requests: "a session token sends at most 10,000 requests over all nodes",
  owners: "no packet reaches another user's peers",
  programs: "a pushed program is tried once, and kept only once it is confirmed",
  secrets: "a device has a secret that an owner holds, and answers to no other",
  storage: "a device has what its program stored, also after a power cut",
  invariants: "what the device programs promise always holds",
  liveness: "without faults no call fails; 100 s after the last everybody is served",
} as const;

export type OracleName = keyof typeof ORACLES;

/** They only check several nodes. */
const CLUSTER_ORACLES: readonly string[] = ["one-link", "requests", "owners"];
/** It only checks a single one: messages of a bus may be lost. */
const ALONE_ORACLES: readonly string[] = ["told"];

/** The oracles that check this scenario. */
export const oraclesOf = ({
  relay,
  invariants = [],
  faults = [],
  devices,
}: Scenario): [string, string][] => {
  const idle = [
    ...((relay?.nodes ?? 1) > 1 ? ALONE_ORACLES : CLUSTER_ORACLES),
    ...(invariants.length > 0 ? [] : ["invariants"]),
    ...(devices.some(({ packet_version: v }) => isForward(v)) ? [] : ["forward"]),
    ...(faults.some(({ kind }) => kind === "device.update") ? [] : ["programs"]),
    ...(faults.some(({ kind }) => kind === "device.rekey") ? [] : ["secrets"]),
  ];
  return Object.entries(ORACLES).filter(([name]) => !idle.includes(name));
};
