/**
 * Relays that share PostgreSQL and NATS: a client of one of them reaches everybody, and gets the
 * same messages as from a single relay.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Node, noCluster, startCluster, type TestCluster } from "../testing/nodes.ts";
import type { TestPeer } from "../testing/peer.ts";
import { noNatsServer, ownNatsServer } from "./testing/nats-server.ts";

const packet = (sid: string, seq = 0) => ({ v: "1", sid, seq, p: "x" });
const envelope = (agentId: string, payload: object | string, more: object = {}) => ({
  type: "relay",
  agent_id: agentId,
  payload: typeof payload === "string" ? payload : JSON.stringify(payload),
  ...more,
});

/** Until then, the agent's node may not have subscribed to messages from the client's node. */
const hears = (client: TestPeer, { agent_id }: { agent_id: string }) =>
  expect
    .poll(() => client.waiting())
    .toContainEqual(expect.objectContaining({ type: "agent_status", agent_id, online: true }));

describe.skipIf(noCluster)("two nodes", () => {
  let cluster: TestCluster;
  let a: Node;
  let b: Node;
  let account: string;
  beforeAll(async () => {
    cluster = await startCluster(2);
    [a, b] = cluster.nodes as [Node, Node];
    account = cluster.account;
  });
  afterAll(() => cluster?.end());

  const newAgent = async (name = "pump") =>
    (await a.api("POST", "/agents", account, { name })).body;

  test("a client calls an agent of the other node: envelope, bare packets, in both directions", async () => {
    const agent = await newAgent();
    const client = await b.client({ api_token: account, presence: true });
    const device = await a.agent(agent);
    await hears(client, agent);
    const opening = envelope(agent.agent_id, packet("C"), { request_id: "r" });
    client.send(opening);
    expect(await device.next()).toEqual(opening);
    device.send(packet("C.A"));
    expect(await client.next()).toEqual(packet("C.A"));
    client.send(packet("C.A", 1));
    expect(await device.next()).toEqual(packet("C.A", 1));
    device.send(envelope(agent.agent_id, packet("C.A", 1)));
    expect(await client.next()).toEqual(envelope(agent.agent_id, packet("C.A", 1)));
    client.socket.close();
  });

  test("an envelope without a packet is answered by its request_id", async () => {
    const agent = await newAgent();
    const client = await b.client({ api_token: account });
    const device = await a.agent(agent);
    await hears(client, agent);
    client.send(envelope(agent.agent_id, "hello", { request_id: "ask-1" }));
    expect((await device.next()).payload).toBe("hello");
    const other = await a.client({ api_token: account });
    other.send(envelope(agent.agent_id, "mine", { request_id: "ask-1" }));
    expect(await other.next()).toMatchObject({ code: "REQUEST_ID_IN_USE", request_id: "ask-1" });
    device.send({ type: "relay", payload: "there", request_id: "ask-1" });
    expect(await client.next()).toMatchObject({ payload: "there", agent_id: agent.agent_id });
  });

  test("errors are those of a single relay", async () => {
    const agent = await newAgent();
    const client = await b.client({ api_token: account });
    client.send(envelope(agent.agent_id, packet("OFF"), { request_id: "r1" }));
    const offline = { code: "AGENT_OFFLINE", sid: "OFF", request_id: "r1" };
    expect(await client.next()).toMatchObject(offline);
    client.send(envelope("no-such-agent", packet("NO")));
    expect(await client.next()).toMatchObject({ code: "AGENT_NOT_FOUND", sid: "NO" });
    client.send(packet("UNBOUND"));
    expect(await client.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid: "UNBOUND" });

    const device = await a.agent(agent);
    await hears(client, agent);
    const local = await a.client({ api_token: account });
    local.send(envelope(agent.agent_id, packet("TAKEN")));
    await device.next();
    client.send(envelope(agent.agent_id, packet("TAKEN")));
    expect(await client.next()).toMatchObject({ code: "SID_IN_USE", sid: "TAKEN" });
    device.send(packet("NOBODY.A", 1));
    expect(await device.next()).toMatchObject({ code: "UNKNOWN_SESSION", sid: "NOBODY.A" });
  });

  test("a guest that leaves takes its bindings along", async () => {
    const agent = await newAgent();
    const client = await b.client({ api_token: account });
    const device = await a.agent(agent);
    await hears(client, agent);
    client.send(envelope(agent.agent_id, packet("GONE")));
    await device.next();
    client.socket.close();
    const codes = () => {
      device.send(packet("GONE.A", 1));
      return device.waiting().map(({ code }) => code);
    };
    await expect.poll(codes).toContain("UNKNOWN_SESSION");
  });

  test("an agent that moves to another node ends its link on the first and is reached there", async () => {
    const agent = await newAgent();
    const client = await b.client({ api_token: account });
    const first = await a.agent(agent);
    await hears(client, agent);
    client.send(envelope(agent.agent_id, packet("MOVE")));
    await first.next();
    const second = await b.agent(agent);
    expect(second.answer.status).toBe("authenticated");
    expect(await first.next()).toMatchObject({ code: "REPLACED" });
    expect(await first.next()).toEqual({ closed: 1008 });
    client.send(packet("MOVE", 1));
    expect(await second.next()).toEqual(packet("MOVE", 1));
    second.send(packet("MOVE.A", 1));
    expect(await client.next()).toEqual(packet("MOVE.A", 1));
    // And back: now it belongs to another node again.
    const third = await a.agent(agent);
    expect(await second.next()).toMatchObject({ code: "REPLACED" });
    client.send(packet("MOVE", 2));
    expect(await third.next()).toEqual(packet("MOVE", 2));
    expect(a.server.hub.isOnline(agent.agent_id)).toBe(true);
    expect(b.server.hub.isOnline(agent.agent_id)).toBe(false);
  });

  test("a token rotated on one node ends the link on the other, which lets the new one in", async () => {
    const agent = await newAgent();
    const device = await a.agent(agent);
    const { body } = await b.api("POST", `/agents/${agent.agent_id}/rotate-token`, account);
    expect(await device.next()).toMatchObject({ code: "REVOKED" });
    expect(await device.next()).toEqual({ closed: 1008 });
    const again = await a.agent({ ...agent, api_token: body.api_token });
    expect(again.answer.status).toBe("authenticated");
    await sleep(1200); // the notice in the store, which says the same, does not end the new link
    expect(again.waiting()).toEqual([]);
    await a.api("DELETE", `/agents/${agent.agent_id}`, account);
    expect(await again.next()).toMatchObject({ code: "REVOKED" });
  });

  test("presence: clients of both nodes are notified once of an agent that connects, moves and disconnects", async () => {
    const agent = await newAgent();
    const watchers = [
      await a.client({ api_token: account }),
      await b.client({ api_token: account }),
    ];
    /** The reports that each client has received so far. */
    const told: boolean[][] = [[], []];
    const heard = () => {
      for (const [at, watcher] of watchers.entries()) {
        for (const { type, agent_id, online } of watcher.waiting()) {
          if (type === "agent_status" && agent_id === agent.agent_id) told[at]?.push(online);
        }
      }
      return told;
    };
    const first = await a.agent(agent);
    await expect.poll(heard).toEqual([[true], [true]]);
    const online = async (node: Node) =>
      (await node.api("GET", `/agents/${agent.agent_id}`, account)).body.online;
    expect(await online(b)).toBe(true);
    const newcomer = await b.client({ api_token: account, presence: true });
    const status = { type: "agent_status", agent_id: agent.agent_id, online: true };
    await expect.poll(() => newcomer.waiting()).toContainEqual(expect.objectContaining(status));
    const second = await b.agent(agent);
    const third = await a.agent(agent);
    third.socket.close();
    // Moves are not reported.
    await expect.poll(heard).toEqual([
      [true, false],
      [true, false],
    ]);
    expect(await online(b)).toBe(false);
    for (const { socket } of [...watchers, newcomer, first, second]) socket.close();
  });

  test("REST says about an agent of the other node what a client was just told", async () => {
    const agent = await newAgent();
    const watcher = await b.client({ api_token: account });
    const told = async () => {
      for (;;) {
        const { type, agent_id, online } = await watcher.next();
        if (type === "agent_status" && agent_id === agent.agent_id) return online;
      }
    };
    const said = async () => [
      (await b.api("GET", `/agents/${agent.agent_id}`, account)).body.online,
      ...(await b.api("GET", "/agents?online=true", account)).body.items
        .filter(({ agent_id }: { agent_id: string }) => agent_id === agent.agent_id)
        .map(({ online }: { online: boolean }) => online),
    ];
    for (let round = 0; round < 5; round += 1) {
      const device = await a.agent(agent);
      expect(await told()).toBe(true);
      expect(await said()).toEqual([true, true]);
      device.socket.close();
      expect(await told()).toBe(false);
      expect(await said()).toEqual([false]);
    }
    watcher.socket.close();
  });

  test("the first client on a node that asks for presence gets all agents", async () => {
    const agent = await newAgent();
    const device = await a.agent(agent);
    const third = await cluster.add();
    const client = await third.client({ api_token: account, presence: true });
    const status = { agent_id: agent.agent_id, online: true };
    await expect.poll(() => client.waiting()).toContainEqual(expect.objectContaining(status));
    const stats = async () => (await third.api("GET", "/admin/stats", account)).body;
    // The nodes' figures are some seconds old.
    await expect.poll(async () => (await stats()).agents.online).toBeGreaterThan(0);
    device.socket.close();
    client.socket.close();
  });

  test("events reach their client before it sends to the agent's new node", async () => {
    const agent = await newAgent();
    const client = await b.client({ api_token: account });
    const local = await a.client({ api_token: account });
    const first = await a.agent(agent);
    await hears(client, agent);
    client.send(envelope(agent.agent_id, packet("FAR")));
    await first.next();
    local.send(envelope(agent.agent_id, packet("NEAR")));
    await first.next();
    const third = cluster.nodes[2] ?? (await cluster.add());
    const moved = await third.agent(agent);
    const events = async () => {
      moved.send(packet("FAR.A", 1));
      moved.send(packet("NEAR.A", 1));
      await sleep(20);
      const sids = ({ sid }: { sid?: string }) => sid;
      return [client.waiting().map(sids), local.waiting().map(sids)];
    };
    await expect
      .poll(events)
      .toEqual([expect.arrayContaining(["FAR.A"]), expect.arrayContaining(["NEAR.A"])]);
    first.socket.close();
  });

  test("one session token on three nodes at once allows exactly 10,000 requests", async () => {
    const agent = await newAgent();
    const third = cluster.nodes[2] ?? (await cluster.add());
    const { session_token } = (await a.api("POST", "/auth/session", account)).body;
    const used = 9_000; // in the last thousand, nodes could take too many, or leave some
    await cluster.sql("update sessions set requests_used = $1 where kind = 'client'", [used]);
    const clients = await Promise.all(
      [a, b, third].map((node) => node.client({ session_token, presence: true })),
    );
    const device = await a.agent(agent);
    await Promise.all(clients.map((client) => hears(client, agent)));
    let passed = 0;
    device.socket.on("message", () => {
      passed += 1;
    });
    const ended = clients.map(async (client) => {
      for (;;) {
        const message = await client.next();
        if (message.closed !== undefined) return message.closed;
      }
    });
    // One node alone may take all that is left: each client sends more than that.
    for (const [at, client] of clients.entries()) {
      for (let i = 0; i <= 10_000 - used; i += 1) {
        client.send(envelope(agent.agent_id, "x", { request_id: `${at}-${i}` }));
      }
    }
    expect(await Promise.all(ended)).toEqual([1008, 1008, 1008]);
    await expect.poll(() => used + passed).toBe(10_000);
    const again = await b.client({ session_token });
    expect(again.answer).toMatchObject({ code: "LIMIT_EXCEEDED" });
    device.socket.close();
  });

  test("after a failover to a database that has lost the last notices, every revocation holds on both nodes", async () => {
    const rotate = (node: Node, { agent_id }: { agent_id: string }, token = account) =>
      node.api("POST", `/agents/${agent_id}/rotate-token`, token);
    const spare = await newAgent();
    for (let n = 0; n < 20; n += 1) await rotate(a, spare);
    await sleep(1100); // both have read them
    const lose = `delete from notices where seq > (select max(seq) - $1::bigint from notices)`;
    await cluster.sql(lose, [15]);
    const renumber = `select setval(pg_get_serial_sequence('notices', 'seq'), (select max(seq) from notices))`;
    await cluster.sql(renumber, []);
    const user = { username: "grace", password: "correct horse", role: "user" };
    const { id } = (await a.api("POST", "/admin/users", account, user)).body;
    const logIn = { username: "grace", password: "correct horse" };
    const token = (await a.api("POST", "/auth/login", null, logIn)).body.user.api_token;
    const [far, near, gone] = [await newAgent(), await newAgent(), await newAgent()];
    const devices = [await a.agent(far), await a.agent(near), await a.agent(gone)];
    const people = [await a.client({ api_token: token }), await b.client({ api_token: token })];
    await rotate(b, far);
    await rotate(a, near);
    await b.api("DELETE", `/agents/${gone.agent_id}`, account);
    await a.api("PATCH", `/admin/users/${id}`, account, { disabled: true });
    for (const link of [...devices, ...people]) {
      expect(await link.next()).toMatchObject({ code: "REVOKED" });
    }
  });

  test("failures of one address count on both nodes together", async () => {
    const wrong = { api_token: "acct_wrong" };
    const tries = [a, b, a, b, a].map(
      (node) => async () => (await node.client(wrong, "192.0.2.7")).answer,
    );
    // What a node tells all others comes before what it then forwards.
    const ends = await Promise.all(
      [a, b].map(async (node) => {
        const agent = await newAgent();
        const client = await node.client({ api_token: account, presence: true });
        return { agent, device: await node.agent(agent), client };
      }),
    );
    await Promise.all(
      ends.map(({ client }, at) => hears(client, (ends[1 - at] as (typeof ends)[0]).agent)),
    );
    const settle = async (attempt: number) => {
      for (const [at, { client }] of ends.entries()) {
        const { agent, device } = ends[1 - at] as (typeof ends)[0];
        client.send(envelope(agent.agent_id, packet(`AFTER-${at}-${attempt}`)));
        expect(await device.next()).toMatchObject({ agent_id: agent.agent_id });
      }
    };
    const answers = [];
    for (const attempt of tries) {
      answers.push(await attempt());
      await settle(answers.length);
    }
    expect(answers.map(({ retry_after }) => retry_after)).toEqual([0, 0, 0, 0, 600]);
    const refused = await b.client({ api_token: account }, "192.0.2.7");
    expect(refused.answer).toMatchObject({ code: "LOCKED_OUT" });
  });
});

describe.skipIf(noCluster || noNatsServer)("with NATS unavailable", () => {
  test("links and local routing continue, remote calls fail at once, revocations come from the store, and all recovers", async () => {
    const nats = await ownNatsServer();
    await nats.stop();
    // Nodes also start without it.
    const cluster = await startCluster(2, { bus: nats.url });
    try {
      const [a, b] = cluster.nodes as [Node, Node];
      const { account } = cluster;
      const make = async () => (await a.api("POST", "/agents", account, { name: "p" })).body;
      const [pump, lamp] = [await make(), await make()];
      const [device, other] = [await a.agent(pump), await a.agent(lamp)];
      const far = await b.client({ api_token: account });
      const near = await a.client({ api_token: account });
      const call = (sid: string) => envelope(pump.agent_id, packet(sid));
      far.send(call("one"));
      expect(await far.next()).toMatchObject({ code: "UNAVAILABLE", sid: "one" });
      await nats.start();
      let seq = 0;
      /** Nothing is in transit once the newest packet has arrived. */
      const passes = (from: TestPeer, to: TestPeer) => async () => {
        seq += 1;
        const newest = envelope(pump.agent_id, packet("one", seq));
        from.send(newest);
        for (let tries = 0; tries < 50 && from.waiting().length === 0; tries++) {
          await sleep(20);
          if (to.waiting().some(({ payload }) => payload === newest.payload)) return true;
        }
        return false;
      };
      await expect.poll(passes(far, device)).toBe(true);

      process.kill(nats.pid(), "SIGSTOP");
      const refused = async () => {
        far.send(packet("one", 1));
        await sleep(20);
        return far.waiting().map(({ code }) => code);
      };
      await expect.poll(refused).toContain("UNAVAILABLE");
      device.waiting();
      near.send(call("two"));
      expect(await device.next()).toEqual(call("two"));
      process.kill(nats.pid(), "SIGCONT");
      await expect.poll(passes(far, device)).toBe(true);
      for (const peer of [far, near, device]) peer.waiting();

      await nats.stop();
      await expect.poll(refused).toContain("UNAVAILABLE");
      device.waiting();
      near.send(call("two"));
      expect(await device.next()).toEqual(call("two"));
      await b.api("POST", `/agents/${lamp.agent_id}/rotate-token`, account);
      expect(await other.next()).toMatchObject({ code: "REVOKED" });
      // Clients of the node may already have been notified that the agent is offline.
      const isNoStatus = ({ type }: { type: string }) => type !== "agent_status";
      expect([device, near].map((peer) => peer.waiting().filter(isNoStatus))).toEqual([[], []]);

      // One agent on both nodes, which cannot know about each other.
      const twin = await b.agent(pump);
      expect(twin.answer.status).toBe("authenticated");
      await nats.start();
      expect(await device.next()).toMatchObject({ code: "REPLACED" });
      near.send(call("two"));
      expect(await twin.next()).toEqual(call("two"));
      expect(twin.waiting()).toEqual([]);
    } finally {
      await cluster.end();
      await nats.stop();
    }
  });
});

test("a bus without a store that nodes can share is refused", async () => {
  await expect(startCluster(1, { store: "sqlite" })).rejects.toThrow(/--bus .*--store postgres/);
});
