/**
 * Section 3 of the contract, routing: who receives a message, and what its sender receives
 * otherwise.
 */
import { randomBytes } from "node:crypto";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import type { RawWebSocket } from "../specification/raw-websocket.ts";
import { type Account, type RegisteredAgent, Relay } from "../specification/relay.ts";

let relay: Relay;
let account: Account;
let device: RegisteredAgent;
let client: RawWebSocket;
let agent: RawWebSocket;
beforeAll(async () => {
  relay = await new Relay().start();
  account = await relay.admin();
});
beforeEach(async () => {
  device = await relay.device(account);
  agent = await relay.agent(device);
  client = await relay.client(account);
});
afterAll(() => relay.close());

const freshSid = () => randomBytes(16).toString("base64url");
const packet = (sid: string, seq = 0) => ({ v: "1", sid, seq, p: "AAAA" });
const envelope = (payload: object | string, more: object = {}) => ({
  type: "relay",
  agent_id: device.agentId,
  payload: typeof payload === "string" ? payload : JSON.stringify(payload),
  ...more,
});

/** Binds a sid by an envelope that reaches the agent. */
const bind = async (sid = freshSid(), by = client): Promise<string> => {
  by.send(envelope(packet(sid)));
  await agent.nextOf("relay");
  return sid;
};

/** Two links of one session token. */
const openTwins = async (): Promise<[RawWebSocket, RawWebSocket]> => {
  const session_token = await relay.sessionToken(account.accountToken);
  const open = async () => (await relay.auth({ client_type: "client", session_token })).link;
  return [await open(), await open()];
};

describe("a bare packet", () => {
  test("is forwarded byte for byte, both ways, including unknown fields and spaces", async () => {
    const sid = await bind();
    const there = `{ "p":"AAAA", "seq" : 1,"x":{"type":"relay"},  "sid":"${sid}.a","v":"1"}`;
    client.send(there);
    await agent.nextOf(null);
    expect(agent.texts.at(-1)).toBe(there);
    const back = there.replace('"seq" : 1', '"seq":2');
    agent.send(back);
    await client.nextOf(null);
    expect(client.texts.at(-1)).toBe(back);
  });

  test("goes to the binding of its first part, whatever follows the dot", async () => {
    const sid = await bind();
    for (const rest of ["", ".a", ".b", `.${"z".repeat(64)}`]) {
      client.send(packet(sid + rest, 1));
      expect(await agent.nextOf(null)).toMatchObject({ sid: sid + rest });
    }
  });

  test("whose sid nobody bound is UNKNOWN_SESSION with its full sid, to either side", async () => {
    const sid = `${freshSid()}.a`;
    client.send(packet(sid));
    expect(await client.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid });
    agent.send(packet(sid));
    expect(await agent.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid });
  });

  test("of an agent on a sid that is bound to another agent is dropped", async () => {
    const sid = await bind();
    const other = await relay.agent(await relay.device(account));
    other.send(packet(sid, 1));
    expect(await other.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid });
    expect((await client.soFar()).filter(({ type }) => type === undefined)).toEqual([]);
  });
});

describe("an envelope", () => {
  test("whose payload is no packet is forwarded and binds nothing", async () => {
    const sid = freshSid();
    for (const payload of [
      "",
      "hello",
      '{"v":"1"}',
      JSON.stringify({ ...packet(sid), type: "x" }),
    ]) {
      client.send(envelope(payload));
      expect((await agent.next()).payload).toBe(payload);
    }
    client.send(packet(sid));
    expect(await client.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid });
  });

  test("to an offline agent binds, and its answer is AGENT_OFFLINE", async () => {
    await agent.close();
    await client.nextOf("agent_status");
    const sid = freshSid();
    client.send(envelope(packet(sid), { request_id: "r" }));
    expect(await client.next()).toMatchObject({ code: "AGENT_OFFLINE", sid, request_id: "r" });
    agent = await relay.agent(device);
    client.send(packet(sid, 1));
    expect(await agent.nextOf(null)).toMatchObject({ sid, seq: 1 });
  });

  test("of an agent gets the agent's own agent_id, and may not contain another", async () => {
    const sid = await bind();
    agent.send({ type: "relay", payload: JSON.stringify(packet(sid)) });
    expect(await client.nextOf("relay")).toMatchObject({ agent_id: device.agentId });
    agent.send({ type: "relay", agent_id: "another", payload: JSON.stringify(packet(sid)) });
    expect(await agent.next()).toMatchObject({ code: "BAD_MESSAGE" });
  });

  test("of an agent is routed by its packet's sid, whatever its request_id", async () => {
    const sid = await bind();
    const request_id = "of nobody";
    agent.send(envelope(packet(`${sid}.a`), { request_id }));
    expect(await client.nextOf("relay")).toMatchObject({ request_id });
  });
});

describe("first binder wins", () => {
  test("another connection of the user gets SID_IN_USE while the first lives", async () => {
    const sid = await bind();
    const other = await relay.client(account);
    other.send(envelope(packet(sid), { request_id: "r" }));
    expect(await other.next()).toMatchObject({ code: "SID_IN_USE", sid, request_id: "r" });
    other.send(packet(sid));
    expect(await other.next()).toMatchObject({ code: "SID_IN_USE", sid });
    await client.close();
    // The relay notices the end of the first connection asynchronously.
    do other.send(envelope(packet(sid)));
    while ((await other.soFar()).some(({ code }) => code === "SID_IN_USE"));
    expect(await agent.nextOf("relay")).toMatchObject({ payload: JSON.stringify(packet(sid)) });
  });

  test("another agent for the same sid gets SID_IN_USE", async () => {
    const sid = await bind();
    const other = await relay.device(account);
    await relay.agent(other);
    client.send(envelope(packet(sid), { agent_id: other.agentId }));
    expect(await client.nextOf("error")).toMatchObject({ code: "SID_IN_USE", sid });
  });

  test("the same session token takes it over, and answers go there", async () => {
    const [dead, fresh] = await openTwins();
    const sid = await bind(freshSid(), dead);
    fresh.send(packet(sid, 1));
    expect(await agent.nextOf(null)).toMatchObject({ sid });
    agent.send(packet(sid, 1));
    expect(await fresh.nextOf(null)).toMatchObject({ sid });
    expect((await dead.soFar()).filter(({ type }) => type === undefined)).toEqual([]);
  });

  test("users are separate: the same first part is two sessions", async () => {
    const sid = await bind();
    const user = await relay.user();
    const own = await relay.device(user);
    const [theirs, theirAgent] = [await relay.client(user), await relay.agent(own)];
    theirs.send(envelope(packet(sid), { agent_id: own.agentId }));
    expect(await theirAgent.next()).toMatchObject({ agent_id: own.agentId });
    theirAgent.send(packet(sid, 1));
    expect(await theirs.nextOf(null)).toMatchObject({ sid });
    expect((await client.soFar()).filter(({ type }) => type === undefined)).toEqual([]);
  });

  test("1,024 at most: the least recently used is evicted, and a use by either side counts", async () => {
    const sids = Array.from({ length: 1_024 }, freshSid);
    for (const sid of sids) client.send(envelope(packet(sid)));
    for (let i = 0; i < sids.length; i++) await agent.nextOf("relay");
    const [byClient, byAgent, unused] = sids as [string, string, string];
    client.send(packet(byClient, 1));
    expect(await agent.nextOf(null)).toMatchObject({ sid: byClient });
    agent.send(packet(byAgent, 1));
    expect(await client.nextOf(null)).toMatchObject({ sid: byAgent });
    await bind();
    for (const sid of [byClient, byAgent]) {
      client.send(packet(sid, 2));
      expect(await agent.nextOf(null)).toMatchObject({ sid, seq: 2 });
    }
    client.send(packet(unused, 1));
    expect(await client.nextOf("error")).toMatchObject({ code: "UNKNOWN_SESSION", sid: unused });
  });
});

describe("a request_id", () => {
  const request_id = "AbC0-_xYz";

  test("routes the answer back for 60 s only", async () => {
    client.send(envelope("question", { request_id }));
    expect(await agent.next()).toMatchObject({ request_id });
    agent.send(envelope("answer", { request_id }));
    expect(await client.nextOf("relay")).toMatchObject({ payload: "answer", request_id });
    relay.advance(60);
    agent.send(envelope("late", { request_id }));
    expect(await agent.nextOf("error")).toMatchObject({ code: "UNKNOWN_SESSION", request_id });
  });

  test("that lives on another connection is REQUEST_ID_IN_USE", async () => {
    client.send(envelope("question", { request_id }));
    await agent.next();
    const other = await relay.client(account);
    other.send(envelope("question", { request_id }));
    expect(await other.next()).toMatchObject({ code: "REQUEST_ID_IN_USE", request_id });
    // An envelope with a packet is never refused for it.
    other.send(envelope(packet(freshSid()), { request_id }));
    expect(await agent.nextOf("relay")).toMatchObject({ request_id });
  });

  test("is taken over by the same session token", async () => {
    const [dead, fresh] = await openTwins();
    dead.send(envelope("question", { request_id }));
    await agent.nextOf("relay");
    fresh.send(envelope("again", { request_id }));
    expect(await agent.nextOf("relay")).toMatchObject({ payload: "again" });
    agent.send(envelope("answer", { request_id }));
    expect(await fresh.nextOf("relay")).toMatchObject({ payload: "answer" });
  });

  test("has 1 to 64 characters", async () => {
    for (const wrong of ["", "x".repeat(65)]) {
      client.send(envelope("question", { request_id: wrong }));
      expect(await client.nextOf("error")).toMatchObject({ code: "BAD_MESSAGE" });
    }
    client.send(envelope("question", { request_id: "x".repeat(64) }));
    expect(await agent.next()).toMatchObject({ payload: "question" });
  });
});
