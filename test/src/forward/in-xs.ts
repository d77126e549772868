/**
 * Runs in XS: `run(agentToken, seed, sessions, keeps)` converses, and keeps private values if told
 * to.
 */
import { seededRandom } from "@blindrelay/agent-sdk/memory";
import type { X25519 } from "@blindrelay/protocol/crypto";
import { nobleChachaSuite } from "@blindrelay/protocol/suites/noble-chacha";
import { nobleX25519 } from "@blindrelay/protocol/suites/noble-x25519";
import { converse } from "./conversation.ts";

const kept: Uint8Array[] = [];
const keeping: X25519 = {
  isNative: false,
  pair: (privateKey) => {
    kept.push(Uint8Array.from(privateKey));
    return nobleX25519.pair(privateKey);
  },
};

const run = (agentToken: string, seed: number, sessions: number, keeps: boolean): void => {
  const x25519 = keeps ? keeping : nobleX25519;
  const random = seededRandom(seed);
  const suite = nobleChachaSuite();
  converse({ suite, x25519, random, agentToken, version: "3" }, sessions);
};
Object.assign(globalThis, { run });
