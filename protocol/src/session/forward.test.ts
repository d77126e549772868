/** Sessions under "3" and "4": their vectors, and what a vector cannot show. */
import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import type { X25519 } from "../crypto/forward-keys.ts";
import type { HmacKey } from "../crypto/suite.ts";
import type { AeadVersion } from "../crypto/versions.ts";
import { asciiBytes, asciiText } from "../encoding/bytes.ts";
import { nodeSuite } from "../suites/node.ts";
import { nodeX25519 } from "../suites/node-x25519.ts";
import { checkForward, type ForwardFile } from "../testing/forward.ts";
import { type AgentSessionLimits, type AgentVerdict, DEFAULT_AGENT_LIMITS } from "./agent.ts";
import { type ClientEffect, DEFAULT_CLIENT_TIMINGS } from "./client.ts";
import { ForwardAgentSessions } from "./forward-agent.ts";
import { ForwardClientSession } from "./forward-client.ts";

const suite = nodeSuite();
const url = new URL("../../vectors/forward-secrecy.json", import.meta.url);
const file = JSON.parse(readFileSync(url, "utf8")) as ForwardFile;

// Those with an X that is not canonical would use a nonce again: test/src/forward has them.
it.each(file.vectors)("version $v, pinned: $pinned, agrees with its vectors", (vector) => {
  const of = { ...file, vectors: [vector], non_canonical_X: [] };
  expect(checkForward(suite, nodeX25519, of)).toEqual([]);
});

const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
const publicOf = (byte: number): Uint8Array => nodeX25519.pair(key(byte)).publicKey();
const sent = ([effect]: ClientEffect[]): string =>
  effect?.kind === "send" ? effect.text : `${effect?.kind}`;
const textOf = (verdict: AgentVerdict): string =>
  verdict.kind === "answer" ? verdict.text : ((verdict as { reply?: string }).reply ?? "");

let worlds = 0;
/** An agent, clients of it, and what they compute. */
const world = (limits: Partial<AgentSessionLimits> = {}, deviceKey: Uint8Array | null = null) => {
  worlds++;
  let drawn = 0;
  /** Secrets as they were made, which whoever made them may overwrite. */
  const secrets: Uint8Array[] = [];
  const kept = <T extends Uint8Array | null>(secret: T): T => {
    if (secret !== null) secrets.push(secret);
    return secret;
  };
  /** Private values that nobody has ended, and how many there were. */
  const unended = new Set<object>();
  let pairs = 0;
  const x25519: X25519 = {
    isNative: true,
    pair: (own) => {
      pairs++;
      const pair = nodeX25519.pair(kept(own));
      const watched = {
        ...pair,
        shared: (other: Uint8Array) => kept(pair.shared(other)),
        end: () => void unended.delete(watched),
      };
      unended.add(watched);
      return watched;
    },
  };
  const shared = {
    suite: {
      ...suite,
      hmac: (with_: HmacKey, data: Uint8Array) => kept(suite.hmac(with_, data)),
      aeadKey: (v: AeadVersion, of: Uint8Array) => suite.aeadKey(v, kept(of)),
    },
    ...{ version: "3" as const, agentId: `lamp-${worlds}` },
    agentToken: "a secret of the tests, and long enough",
  };
  const agent = new ForwardAgentSessions(
    {
      ...{ ...shared, bootCount: 1, deviceRandom: new Uint8Array(16), serialNumber: null },
      limits: { ...DEFAULT_AGENT_LIMITS, ...limits },
    },
    { x25519, seed: kept(key(7)), deviceKey },
  );
  const client = (device: Uint8Array | null = null) =>
    new ForwardClientSession(
      {
        ...{ ...shared, timings: DEFAULT_CLIENT_TIMINGS },
        random: (length) => new Uint8Array(length).fill(++drawn),
      },
      { x25519, deviceKey: device },
    );
  return { agent, client, secrets, unended, pairs: () => pairs };
};

/** A new client's first packet, after the answer to its opening. */
const hello = ({ agent }: ReturnType<typeof world>, client: ForwardClientSession): string =>
  sent(client.receive(textOf(agent.receive(sent(client.open(0)), 0)), 0));

const refused = (reason: string) => ({ kind: "refused", reason });

it("a session opens by one exchange, and is asked for by its opening while it is in doubt", () => {
  const one = world();
  const { agent } = one;
  const client = one.client();
  const first = hello(one, client);
  expect(client.inDoubt()).toBeNull();
  expect(agent.receive(first.replace(/"p":"..../, '"p":"'), 0)).toEqual(refused("malformed"));
  const verdict = agent.receive(first, 0);
  expect(verdict).toMatchObject({ kind: "message", fresh: true, plaintext: new Uint8Array(0) });
  const sid = client.sid() as string;
  expect(client.receive(textOf(verdict), 0)).toEqual([{ kind: "opened", sid, gap: 0 }]);

  const call = client.seal(asciiBytes("call")) as string;
  const heard = agent.receive(call, 0);
  expect(heard).toMatchObject({ kind: "message", gap: 0, fresh: false });
  expect(heard).not.toHaveProperty("reply");
  const [answer] = client.receive(agent.seal(sid, asciiBytes("answer")) as string, 0);
  expect(answer?.kind === "message" && [answer.gap, asciiText(answer.plaintext)]).toEqual([
    ...[0, "answer"],
  ]);
  // An agent that still has it says so by the bytes of its answer.
  const held = textOf(agent.receive(client.inDoubt() as string, 0));
  expect(client.receive(held, 0)).toEqual([refused("repeat")]);
  expect(agent.counters.answered).toBe(2);
  agent.close(sid);
  expect(agent.receive(client.seal(asciiBytes("call")) as string, 0)).toEqual(refused("replay"));
  client.giveUp();
  expect(client.inDoubt()).toBeNull();
});

it("a client waits for the proof through whatever else comes, and gives up without a trace", () => {
  const one = world();
  const client = one.client();
  const proof = textOf(one.agent.receive(hello(one, client), 0));
  const answer = textOf(one.agent.receive(Reflect.get(client, "opening"), 0));
  const others = [
    [answer, "repeat"],
    [proof.replace('"seq":1,', '"seq":2,'), "malformed"],
    [proof.replace(/"p":"..../, '"p":"'), "malformed"],
    [proof.replace(/"p":"..../, '"p":"AAAA'), "forged"],
  ] as const;
  for (const [text, reason] of others) expect(client.receive(text, 0)).toEqual([refused(reason)]);
  expect([client.state, one.unended.size]).toEqual(["confirming", 1]);
  client.giveUp();
  expect([client.state, client.first(), one.unended.size]).toEqual(["idle", null, 0]);
  expect(client.receive(proof, 0)).toEqual([refused("foreign")]);
});

it.each([
  ["the device's key", key(1), publicOf(1), true],
  ["another key", key(1), publicOf(2), false],
  ["no key of a device that has one", key(1), null, false],
  ["a key that is none, which nobody can prove", null, new Uint8Array(32), false],
])("a client with %s: is the session proven?", (_what, device, pinned, isProven) => {
  const one = world({}, device);
  const client = one.client(pinned);
  const [effect] = client.receive(textOf(one.agent.receive(hello(one, client), 0)), 0);
  if (isProven) expect([effect?.kind, client.state]).toEqual(["opened", "open"]);
  else expect([effect, client.state]).toEqual([{ kind: "abandoned", reason: "unproven" }, "idle"]);
});

it("what the keys of a session are made of is overwritten as soon as they are made", () => {
  const one = world({}, key(1));
  const client = one.client(publicOf(1));
  client.receive(textOf(one.agent.receive(hello(one, client), 0)), 0);
  expect(client.state).toBe("open");
  // On both sides the secret's PRK and the opening's key; the public A, derived twice; the secret
  // of the epoch, the next dh, and the device's own key.
  const left = one.secrets.filter((secret) => secret.some((byte) => byte !== 0));
  expect([left.length, one.secrets.length - left.length > 20]).toEqual([9, true]);
  expect(one.unended.size).toBe(1);
});

it("an agent without room refuses a first packet before it multiplies, but always has one place", () => {
  let short = true;
  const one = world({ hasRoom: () => !short });
  const { agent } = one;
  const hellos = [1, 2, 3].map(() => hello(one, one.client()));
  const [first, second, third] = hellos as [string, string, string];
  expect(agent.receive(first, 0).kind).toBe("message");
  short = false;
  expect(agent.receive(second, 0).kind).toBe("message");
  short = true;
  const before = one.pairs();
  expect(agent.receive(third, 9_999)).toEqual(refused("rate"));
  expect(one.pairs()).toBe(before);
  expect(agent.receive(third, 10_000).kind).toBe("message");
  expect(agent.held()).toHaveLength(2);
});

it("an agent that has ended keeps nothing that leads to a session's keys", () => {
  const one = world();
  one.agent.receive(hello(one, one.client()), 0);
  one.agent.end();
  const secrets = [Reflect.get(one.agent, "dh"), ...one.agent.epochs.map(({ secret }) => secret)];
  expect(secrets.map((secret) => [...secret])).toEqual(Array(2).fill(Array(32).fill(0)));
  expect(one.agent.receive(sent(one.client().open(0)), 3_600_000)).toEqual(refused("rate"));
});
