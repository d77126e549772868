/**
 * Encrypted packets, made here with node:crypto from the specification alone, against the product's
 * two ends as users start them: `blindrelay agent run` and `blindrelay call`.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  AgentSession,
  ClientSession,
  drawAgentToken,
  packetIn,
  type Shared,
  seal,
} from "./packet.ts";
import type { RawWebSocket } from "./raw-websocket.ts";
import { type Account, type RegisteredAgent, Relay } from "./relay.ts";

const COMMAND = resolve(import.meta.dirname, "../../../tools/src/main.ts");

const VERSIONS = ["1", "2", "3", "4"] as const;

let relay: Relay;
let account: Account;
const running: ChildProcess[] = [];
beforeAll(async () => {
  relay = await new Relay().start();
  account = await relay.admin();
  await Promise.all(VERSIONS.map(startAgent));
});
afterAll(async () => {
  for (const child of running) {
    child.kill("SIGKILL");
    if (child.exitCode === null && child.signalCode === null) await once(child, "exit");
  }
  await relay.close();
});

/** `blindrelay ...` in its own process, without the settings of this one. */
const command = (args: string[], settings: Record<string, string>): ChildProcess => {
  const surrounding = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("BLINDRELAY_") || name.startsWith("BLINDRELAY_TEST_"),
  );
  const child = spawn(process.execPath, [COMMAND, ...args], {
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...Object.fromEntries(surrounding),
      BLINDRELAY_CONFIG_DIR: join(relay.data, "config"),
      BLINDRELAY_URL: relay.url,
      ...settings,
    },
  });
  running.push(child);
  return child;
};

const PROGRAM = `export default (agent) => { agent.handle("echo", (params) => params); };`;

const agents = new Map<Shared["v"], Shared>();

/** The product's agent on Node, once the relay shows it online. */
const startAgent = async (v: Shared["v"]): Promise<void> => {
  const device = await relay.device(account);
  const shared = { agentId: device.agentId, agentToken: drawAgentToken(), v };
  const program = join(relay.data, "program.js");
  writeFileSync(program, PROGRAM);
  const listener = await relay.client(account, { presence: true });
  command(["agent", "run", program], {
    BLINDRELAY_AGENT_ID: shared.agentId,
    BLINDRELAY_RELAY_TOKEN: device.relayToken,
    BLINDRELAY_AGENT_TOKEN: shared.agentToken,
    BLINDRELAY_PACKET_VERSION: v,
    BLINDRELAY_STATE_DIR: join(relay.data, `state-${v}`),
  });
  for (;;) {
    const { agent_id, online, closed } = await listener.next();
    if (closed !== undefined) throw new Error("the relay is gone");
    if (agent_id === shared.agentId && online === true) break;
  }
  listener.destroy();
  agents.set(v, shared);
};

const agentOf = (v: Shared["v"]): Shared => agents.get(v) as Shared;

const session = async (v: Shared["v"] = "1") => {
  const link = await relay.client(account);
  return { link, talk: await new ClientSession(link, agentOf(v)).start() };
};

/** Fails if the agent sends anything before it answers the next call. */
const nothingBefore = async (link: RawWebSocket, talk: ClientSession): Promise<void> => {
  expect(await talk.call("echo", { next: true })).toMatchObject({ result: { next: true } });
  expect(await link.soFar()).toEqual([]);
};

/** `blindrelay call` to an agent that the test plays. */
const callRawAgent = async (params: object, v: Shared["v"] = "1") => {
  const device: RegisteredAgent = await relay.device(account);
  const shared: Shared = { agentId: device.agentId, agentToken: drawAgentToken(), v };
  const agent = new AgentSession();
  const link = await relay.agent(device);
  const serving = agent.serve(link, shared, (method, given) => ({ method, given }));
  const child = command(["call", shared.agentId, "valve.open", JSON.stringify(params)], {
    BLINDRELAY_ACCOUNT_TOKEN: account.accountToken,
    BLINDRELAY_AGENT_TOKEN: shared.agentToken,
    BLINDRELAY_PACKET_VERSION: v,
  });
  const [out, err] = await Promise.all([
    text(child.stdout as NonNullable<typeof child.stdout>),
    text(child.stderr as NonNullable<typeof child.stderr>),
  ]);
  link.destroy();
  await serving;
  expect(err).toBe("");
  return { answer: JSON.parse(out), agent, shared };
};
let rawAgentCalled: ReturnType<typeof callRawAgent> | undefined;
const MARKER = "cellar-door-7291";
/** Once for all tests. */
const calledRawAgent = () => {
  rawAgentCalled ??= callRawAgent({ note: MARKER });
  return rawAgentCalled;
};

/** Everything that the relay wrote to its disk. */
const stored = (): Buffer => {
  const folder = join(relay.data, "store");
  return Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
};

test("service.blind", async () => {
  const device = await relay.device(account);
  const [client, agent] = [await relay.client(account), await relay.agent(device)];
  // Sealed with a secret that nobody else has: the relay cannot tell, and forwards it.
  const foreign: Shared = { agentId: device.agentId, agentToken: drawAgentToken(), v: "1" };
  const payload = seal(foreign, "c2a", "A".repeat(22), 0, "");
  client.send({ type: "relay", agent_id: device.agentId, payload });
  expect((await agent.next()).payload).toBe(payload);
  const bare = seal(foreign, "c2a", `${"A".repeat(22)}.x`, 1, "{}");
  client.send(bare);
  expect(await agent.next()).toEqual(JSON.parse(bare));
});

test("secret.e2e", async () => {
  const shared = agentOf("1");
  const { talk } = await session();
  expect(await talk.call("echo", { n: 1 })).toMatchObject({ result: { n: 1 } });
  // Another secret gives different keys: the agent does not answer.
  const link = await relay.client(account);
  new ClientSession(link, { ...shared, agentToken: drawAgentToken() }).sendOpening();
  const right = await new ClientSession(link, shared).start();
  await nothingBefore(link, right);
  expect(stored().includes(shared.agentToken)).toBe(false);
});

test("packet.v", async () => {
  for (const v of VERSIONS) {
    const { talk } = await session(v);
    expect(JSON.parse(talk.opening)).toMatchObject({ v });
    expect(await talk.call("echo", { v })).toMatchObject({ result: { v } });
  }
  // A version that the agent is not configured for is not answered.
  const { link, talk } = await session("1");
  new ClientSession(link, { ...agentOf("1"), v: "2" }).sendOpening();
  await nothingBefore(link, talk);
  // And the product calls an agent of each.
  for (const v of VERSIONS) {
    const { answer, agent } = await callRawAgent({ v }, v);
    expect(answer).toEqual({ method: "valve.open", given: { v } });
    const packets = agent.received.map((message) => packetIn(JSON.parse(message)));
    expect(new Set(packets.map((packet) => packet.v))).toEqual(new Set([v]));
  }
});

test("packet.sid", async () => {
  // Two sessions over one link: only the sid tells whose a bare packet is.
  const link = await relay.client(account);
  const one = await new ClientSession(link, agentOf("1")).start();
  const other = await new ClientSession(link, agentOf("2")).start();
  expect(one.sid).toMatch(/^[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{22}$/);
  for (const talk of [one, other, one]) {
    const { result } = await talk.call("system.info");
    expect(result.methods).toContain("echo");
  }
});

test("packet.seq", async () => {
  const { link, talk } = await session();
  const packet = talk.sealNext({ jsonrpc: "2.0", id: 7, method: "echo", params: [7] });
  expect(Number.isInteger(JSON.parse(packet).seq)).toBe(true);
  link.send(packet);
  expect(JSON.parse(await talk.receive())).toMatchObject({ id: 7, result: [7] });
  // A number that was accepted is not accepted again, nor is one that is not an integer literal.
  link.send(packet);
  link.send(
    talk.sealNext({ jsonrpc: "2.0", id: 8, method: "echo" }).replace(/("seq":\d+)/, "$1.0"),
  );
  await nothingBefore(link, talk);
});

test("packet.p", async () => {
  const { link, talk } = await session();
  const { p } = JSON.parse(talk.opening);
  expect(p).toMatch(/^[A-Za-z0-9_-]{22}$/); // only a tag of 16 bytes
  const spoilt = (change: (p: string) => string): string => {
    const packet = JSON.parse(talk.sealNext({ jsonrpc: "2.0", id: 9, method: "echo" }));
    return JSON.stringify({ ...packet, p: change(packet.p) });
  };
  link.send(spoilt((good) => (good.startsWith("A") ? "B" : "A") + good.slice(1))); // ciphertext
  link.send(spoilt((good) => good.slice(0, -4) + (good.endsWith("AAAA") ? "BBBB" : "AAAA"))); // tag
  link.send(spoilt((good) => `${good}=`));
  await nothingBefore(link, talk);
});

test("packet.opaque", async () => {
  const { answer, agent, shared } = await calledRawAgent();
  expect(answer).toEqual({ method: "valve.open", given: { note: MARKER } });
  expect(agent.plaintexts.join()).toContain(MARKER);
  expect(agent.received.length).toBeGreaterThan(2);
  for (const message of agent.received) {
    const decoded = Buffer.from(JSON.parse(message).p ?? "", "base64url").toString("latin1");
    for (const seen of [message, decoded]) {
      expect(seen).not.toContain(MARKER);
      expect(seen).not.toContain("valve.open");
      expect(seen).not.toContain(shared.agentToken);
    }
  }
});

test("relay.cannot_read", async () => {
  const { shared } = await calledRawAgent();
  const all = stored();
  expect(all.includes(shared.agentToken)).toBe(false);
  expect(all.includes(MARKER)).toBe(false);
  // No parameter accepts the secret, and no answer contains it.
  const described = (await relay.root("GET", "/api/openapi.json")).json;
  const fields = JSON.stringify(Object.values(described.paths));
  expect(fields).not.toContain('"agent_token"');
  const { json } = await relay.api("GET", `/agents/${shared.agentId}/export`, {
    token: account.accountToken,
  });
  expect(JSON.stringify(json)).not.toContain("e2e_");
});
