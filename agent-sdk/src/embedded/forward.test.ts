/** The build option of packet versions "3" and "4", as a small device's start takes it. */
import { makeToken } from "@blindrelay/protocol";
import { ForwardClientSession } from "@blindrelay/protocol/forward-client";
import { type ClientEffect, DEFAULT_CLIENT_TIMINGS } from "@blindrelay/protocol/session";
import { nodeSuite } from "@blindrelay/protocol/suites/node";
import { nodeX25519 } from "@blindrelay/protocol/suites/node-x25519";
import { expect, it } from "vitest";
import { ManualTimer, MemoryStorage, memoryNetwork, seededRandom } from "../memory/index.ts";
import { forward } from "./forward.ts";
import { provisionAgent, type StartOptions, startAgent } from "./start.ts";

const SEED = Buffer.alloc(32, 1).toString("base64url");
const DEVICE_KEY = Buffer.alloc(32, 2);
const OWN = DEVICE_KEY.toString("base64url");
const UNPROVEN = { kind: "abandoned", reason: "unproven" };

/** An agent with a secret of its own: the seeds are all the same. */
const start = (seed: string | undefined, options: Partial<StartOptions>) => {
  const timer = new ManualTimer();
  const agentToken = makeToken("e2e", crypto.getRandomValues(new Uint8Array(32)));
  const ports = {
    timer,
    link: memoryNetwork({ timer, accept: () => false }),
    random: seededRandom(1),
    storage: new MemoryStorage(),
    suite: nodeSuite(),
    log: () => undefined,
  };
  provisionAgent(ports, agentToken, seed);
  const core = startAgent(ports, {
    url: "ws://relay.test/wss",
    agentId: "pump",
    relayToken: makeToken("agent", new Uint8Array(32)),
    agentToken,
    packetVersion: "3",
    runtime: "test",
    program: () => undefined,
    ...options,
  });
  return { core, agentToken };
};

it("starts under 3 only with the option and with a seed", () => {
  expect(() => start(SEED, {})).toThrow('packet version "3" needs X25519');
  expect(() => start(undefined, { forward })).toThrow("need a seed beside the boot count");
  expect(() => start(SEED, { forward })).not.toThrow();
});

it("starts under 1 with the option, and with a seed or without", () => {
  for (const seed of [SEED, undefined]) {
    expect(() => start(seed, { forward, packetVersion: "1" })).not.toThrow();
  }
});

it.each([
  ["too short", "3", "AAAA"],
  ["of a version without one", "1", OWN],
] as const)("refuses a device key that is %s", (_what, packetVersion, deviceKey) => {
  expect(() => start(SEED, { forward, packetVersion, deviceKey })).toThrow("deviceKey: a device");
});

it.each(["AAAA", `${SEED}A`, "not base64url"])("refuses %s as a seed", (seed) => {
  expect(() => start(seed, { forward })).toThrow("seed: 43 characters of base64url");
});

it.each([
  ["its own", OWN, DEVICE_KEY, { kind: "opened" }],
  ["another one", OWN, Buffer.alloc(32, 3), UNPROVEN],
  ["one that it was not given", undefined, DEVICE_KEY, UNPROVEN],
] as const)("proves %s to a client that pinned it, or is abandoned", (_what, own, pinned, end) => {
  const { core, agentToken } = start(SEED, {
    forward,
    ...(own !== undefined && { deviceKey: own }),
  });
  const client = new ForwardClientSession(
    {
      suite: nodeSuite(),
      random: seededRandom(1),
      agentId: "pump",
      agentToken,
      version: "3",
      timings: DEFAULT_CLIENT_TIMINGS,
    },
    { x25519: nodeX25519, deviceKey: nodeX25519.pair(pinned).publicKey() },
  );
  const texts = (effects: readonly ClientEffect[]): string[] =>
    effects.flatMap((effect) => (effect.kind === "send" ? [effect.text] : []));
  const [opening] = texts(client.open(0));
  const answer = core.sessions.receive(opening as string, 0);
  if (answer.kind !== "answer") throw new Error(answer.kind);
  const [offer] = texts(client.receive(answer.text, 0));
  const verdict = core.sessions.receive(offer as string, 0);
  if (verdict.kind !== "message") throw new Error(verdict.kind);
  expect(client.receive(verdict.reply as string, 0)[0]).toMatchObject(end);
});
