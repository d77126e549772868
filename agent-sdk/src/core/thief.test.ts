/**
 * Conversations under "3" and "4" are recorded; then somebody gets agent_token, the slots and all
 * that the memory of both sides still refers to. The derivations are written once more here.
 */
import { createHmac, KeyObject } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import {
  deriveEpochSecret,
  deriveSessionKeys,
  extractPrk,
  openPacket,
  type Packet,
  parsePacket,
  type Version,
} from "@blindrelay/protocol/crypto";
import { ForwardAgentSessions } from "@blindrelay/protocol/forward-agent";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { DEFAULT_AGENT_LIMITS, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { describe, expect, it } from "vitest";
import { MemoryStorage } from "../memory/index.ts";
import { provisionBootCount, raiseBootCount } from "./bootcount.ts";

const suite = nodeSuite();
const AGENT_ID = "lamp-1";
const TOKEN = makeToken("e2e", new Uint8Array(32).fill(1));
const SEED = new Uint8Array(32).fill(0x5e);
/** Of a board that draws the same after every reset: the thief knows it. */
const RANDOM = new Uint8Array(16);
const MAX_COUNT = 3;
/** More than what happens between the theft and what is to be read. */
const MOVES = 3;

let drawn = 0;
/** Never the same; at the start of a session, C and then x. */
const random = (length: number): Uint8Array => new Uint8Array(length).fill(++drawn);

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const hmac = (key: Uint8Array, text: string | Uint8Array): Uint8Array =>
  createHmac("sha256", key).update(text).digest();
const isSame = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

const different = (all: readonly Uint8Array[]): Uint8Array[] => [
  ...new Map(all.map((each) => [Buffer.from(each).toString("hex"), each])).values(),
];

/** What a relay has of one session. */
interface Recording {
  readonly hello: Packet;
  readonly answer: Packet;
  readonly call: Packet;
}

const talk = (agent: ForwardAgentSessions, v: Version): [Recording, ForwardClientSession] => {
  const client = new ForwardClientSession(
    ...([
      {
        ...{ suite, random, agentId: AGENT_ID, agentToken: TOKEN, version: v },
        timings: DEFAULT_CLIENT_TIMINGS,
      },
      { x25519: nodeX25519, deviceKey: null },
    ] as const),
  );
  const sent = (effects: ReturnType<typeof client.open>): string =>
    effects.flatMap((effect) => (effect.kind === "send" ? [effect.text] : []))[0] as string;
  const answered = agent.receive(sent(client.open(0)), 0) as { text: string };
  const hello = sent(client.receive(answered.text, 0));
  const { reply, sid } = agent.receive(hello, 0) as { reply: string; sid: string };
  client.receive(reply, 0);
  const call = client.seal(bytes("a call"));
  expect(agent.receive(call as string, 0)).toMatchObject({ kind: "message" });
  agent.close(sid);
  client.giveUp();
  const [first, second, third] = [hello, reply, call].map((text) => parsePacket(text as string));
  return [{ hello: first, answer: second, call: third } as Recording, client];
};

/** All bytes that an object leads to, keys of node:crypto included. */
const bytesIn = (root: unknown): Uint8Array[] => {
  const found: Uint8Array[] = [];
  const seen = new Set<unknown>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (value instanceof KeyObject) found.push(value.export());
    else if (value instanceof Uint8Array) found.push(Uint8Array.from(value));
    else for (const each of Object.values(value)) visit(each);
  };
  visit(root);
  return found;
};

/** The fifth word of each slot. */
const seedsIn = (storage: MemoryStorage): Uint8Array[] =>
  ["boot.0", "boot.1"].map((name) =>
    Uint8Array.from(Buffer.from((storage.read(name) ?? "").split(" ")[4] ?? "", "hex")),
  );

/** Every value that y may be derived from, if these are seeds, or what follows a seed. */
const followed = (secrets: readonly Uint8Array[]): Uint8Array[] => {
  const prk = extractPrk(suite, AGENT_ID, TOKEN);
  const moved = (secret: Uint8Array, label: string): Uint8Array[] => {
    const chain = [secret];
    while (chain.length < MOVES) chain.push(hmac(chain.at(-1) as Uint8Array, label));
    return chain;
  };
  const starts = secrets.flatMap((secret) =>
    moved(secret, "seed").flatMap((seed) =>
      Array.from({ length: MAX_COUNT }, (_, i) =>
        hmac(seed, deriveEpochSecret(suite, prk, i + 1, RANDOM, null)),
      ),
    ),
  );
  const made = [...secrets, ...starts].flatMap((start) => [
    ...[start, hmac(start, "epoch"), hmac(start, "dh")],
  ]);
  return made.flatMap((secret) => moved(secret, "next"));
};

/** Whether one of the secrets leads to y of a session, or opens its call. */
const reads = ({ hello, answer, call }: Recording, secrets: readonly Uint8Array[]): boolean => {
  const { v, sid } = hello;
  const keys = deriveSessionKeys(suite, extractPrk(suite, AGENT_ID, TOKEN), v, sid);
  const x = openPacket(suite, keys.c2a, hello) as Uint8Array;
  const y = (openPacket(suite, keys.a2c, answer) as Uint8Array).subarray(0, 32);
  const label = `x25519|${v}|${sid}|${Buffer.from(x).toString("base64url")}`;
  const whole = different(secrets.filter(({ length }) => length === 32));
  const isY = (secret: Uint8Array): boolean => isSame(nodeX25519.pair(secret).publicKey(), y);
  if (whole.some(isY) || different(followed(whole)).some((secret) => isY(hmac(secret, label))))
    return true;
  const ivs = [...secrets.filter(({ length }) => length === 12), keys.c2a.iv];
  const aead = v === "3" ? "1" : "2";
  return whole.some((secret) =>
    ivs.some((iv) => openPacket(suite, { key: suite.aeadKey(aead, secret), iv }, call) !== null),
  );
};

describe.each<Version>(["3", "4"])("a thief of everything, after sessions under %s", (v) => {
  const storage = new MemoryStorage();
  provisionBootCount(storage, suite, TOKEN, SEED);
  const recordings: Recording[] = [];
  const left: Uint8Array[] = [];
  let before: Uint8Array = new Uint8Array();
  for (const sessions of [2, 1]) {
    const boot = raiseBootCount(storage, suite, TOKEN);
    if (!boot.ok) throw new Error(boot.advice);
    const agent = new ForwardAgentSessions(
      {
        ...{ suite, agentId: AGENT_ID, agentToken: TOKEN, version: v, bootCount: boot.count },
        ...{ deviceRandom: RANDOM, serialNumber: null, limits: DEFAULT_AGENT_LIMITS },
      },
      { x25519: nodeX25519, seed: boot.seed as Uint8Array, deviceKey: null },
    );
    if (before.length === 0) before = Uint8Array.from((agent as unknown as { dh: Uint8Array }).dh);
    for (let i = 0; i < sessions; i++) {
      const [recording, client] = talk(agent, v);
      recordings.push(recording);
      left.push(...bytesIn(client));
    }
    left.push(...bytesIn(agent));
  }

  it("opens nothing that was recorded", () => {
    const taken = [...left, ...seedsIn(storage)];
    expect(seedsIn(storage).map(({ length }) => length)).toEqual([32, 32]);
    expect(taken.length).toBeGreaterThan(10);
    expect(recordings.map((recording) => reads(recording, taken))).toEqual([false, false, false]);
  });

  it("would open all of it with the seed from before the starts", () => {
    expect(recordings.map((recording) => reads(recording, [SEED]))).toEqual([true, true, true]);
  });

  it("would open the sessions of one start with what dh was before them", () => {
    expect(recordings.map((recording) => reads(recording, [before]))).toEqual([true, true, false]);
  });
});
