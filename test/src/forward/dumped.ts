/**
 * Run by memory.test.ts: an agent and a client whose sessions under "3" or "4" have ended, and
 * which wait to be dumped. Their secrets are told to the parent under a mask, so that the telling
 * leaves no copy. Arguments: the version, and what is kept against the rules (a kind of secret, or
 * "").
 */
import { randomBytes } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { converse } from "./conversation.ts";
import { type Kind, type Tell, tellingSuite, tellingX25519 } from "./telling.ts";

export interface Told {
  readonly agentToken: string;
  readonly sids: readonly string[];
  /** Each byte XOR MASK. */
  readonly secrets: readonly { readonly kind: Kind; readonly masked: readonly number[] }[];
}

export const MASK = 0xa5;
const SESSIONS = 3;

const dump = async (version: "3" | "4", keep: string): Promise<void> => {
  const secrets: { kind: Kind; masked: number[] }[] = [];
  const kept: Uint8Array[] = [];
  const tell: Tell = (kind, secret) => {
    secrets.push({ kind, masked: Array.from(secret, (byte) => byte ^ MASK) });
    if (kind === keep) kept.push(Uint8Array.from(secret));
  };
  const agentToken = makeToken("e2e", randomBytes(32));
  const random = (length: number): Uint8Array => randomBytes(length);
  const suite = tellingSuite(nodeSuite(), tell);
  const x25519 = tellingX25519(nodeX25519, tell);
  const sids = converse({ suite, x25519, random, agentToken, version }, SESSIONS);
  const collect = (globalThis as unknown as { gc(): void }).gc;
  // node:crypto overwrites a key when it is collected, in tasks between collections.
  for (let turn = 0; turn < 10; turn++) {
    collect();
    await new Promise((done) => setTimeout(done, 20));
  }
  const told: Told = { agentToken, sids, secrets };
  process.send?.(told);
  process.once("disconnect", () => process.exit(kept.length > 0 ? 1 : 0));
};

const [, program, version, keep = ""] = process.argv;
if (program === import.meta.filename) await dump(version as "3" | "4", keep);
