/**
 * Run by memory.test.ts: an agent and a client whose sessions under "3" or "4" have ended, and which
 * wait to be dumped. Their secrets are told to the parent under a mask, so that the telling leaves
 * no copy. Arguments: the version, and what is kept against the rules (a kind of secret, or "").
 */

import { randomBytes } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import type { Suite, Version, X25519 } from "@blindrelay/protocol/crypto";
import { ForwardAgentSessions } from "@blindrelay/protocol/forward-agent";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { DEFAULT_AGENT_LIMITS, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";

/** `derived`: a key of an HMAC; `sealing`: of packets. */
export type Kind = "private" | "shared" | "derived" | "sealing";

export interface Told {
  readonly agentToken: string;
  readonly sids: readonly string[];
  /** Each byte XOR MASK. */
  readonly secrets: readonly { readonly kind: Kind; readonly masked: readonly number[] }[];
}

export const AGENT_ID = "lamp-1";
export const MASK = 0xa5;
const SESSIONS = 3;
const CALLS = 5;

const [, , version, keep] = process.argv;
const secrets: { kind: Kind; masked: number[] }[] = [];
const sids: string[] = [];
const kept: Uint8Array[] = [];
const tell = (kind: Kind, secret: Uint8Array): void => {
  secrets.push({ kind, masked: Array.from(secret, (byte) => byte ^ MASK) });
  if (kind === keep) kept.push(Uint8Array.from(secret));
};

const x25519: X25519 = {
  isNative: true,
  pair: (privateKey) => {
    tell("private", privateKey);
    const pair = nodeX25519.pair(privateKey);
    return {
      ...pair,
      shared: (other) => {
        const shared = pair.shared(other);
        if (shared !== null) tell("shared", shared);
        return shared;
      },
    };
  },
};
const plain = nodeSuite();
const suite: Suite = {
  ...plain,
  hmacKey: (key) => {
    tell("derived", key);
    return plain.hmacKey(key);
  },
  aeadKey: (v, key) => {
    tell("sealing", key);
    return plain.aeadKey(v, key);
  },
};
const agentToken = makeToken("e2e", randomBytes(32));

const talk = (): void => {
  const agent = new ForwardAgentSessions(
    {
      ...{ suite, agentId: AGENT_ID, agentToken, version: version as Version, bootCount: 2 },
      ...{ deviceRandom: randomBytes(16), serialNumber: null, limits: DEFAULT_AGENT_LIMITS },
    },
    { x25519, seed: randomBytes(32), deviceKey: null },
  );
  for (let session = 0; session < SESSIONS; session++) {
    const client = new ForwardClientSession(
      {
        ...{ suite, agentId: AGENT_ID, agentToken, version: version as Version },
        ...{ random: (length) => randomBytes(length), timings: DEFAULT_CLIENT_TIMINGS },
      },
      { x25519, deviceKey: null },
    );
    const sent = (effects: ReturnType<typeof client.open>): string =>
      effects.flatMap((effect) => (effect.kind === "send" ? [effect.text] : []))[0] as string;
    const answered = agent.receive(sent(client.open(0)), 0) as { text: string };
    const hello = agent.receive(sent(client.receive(answered.text, 0)), 0);
    const { reply, sid } = hello as { reply: string; sid: string };
    sids.push(sid);
    client.receive(reply, 0);
    for (let call = 0; call < CALLS; call++) {
      const verdict = agent.receive(client.seal(new Uint8Array(100)) as string, 0);
      if (verdict.kind !== "message") throw new Error(verdict.kind);
      client.receive(agent.seal(sid, new Uint8Array(200)) as string, 0);
    }
    agent.close(sid);
    client.giveUp();
  }
  agent.end();
};

if (process.argv[1] === import.meta.filename) {
  talk();
  const collect = (globalThis as unknown as { gc(): void }).gc;
  // node:crypto overwrites a key when it is collected, in tasks between collections.
  for (let turn = 0; turn < 10; turn++) {
    collect();
    await new Promise((done) => setTimeout(done, 20));
  }
  const told: Told = { agentToken, sids, secrets };
  process.send?.(told);
  process.once("disconnect", () => process.exit(kept.length > 1e6 ? 1 : 0));
}
