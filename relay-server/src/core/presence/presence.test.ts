/** What a node answers about an agent, from what it told its clients; the rest: connection-life. */
import { OUTBOX_BYTES } from "@blindrelay/protocol";
import { growth, LINEAR } from "@blindrelay/protocol/testing/growth";
import { expect, it } from "vitest";
import type { OnlineAgent } from "../bus.ts";
import {
  GONE_KEPT_MS,
  NEWS_AT_ONCE,
  NEWS_KEPT,
  NEWS_PER_TURN,
  SNAPSHOT_BATCH,
  SNAPSHOTS_AT_ONCE,
} from "../limits/limits.ts";
import { type VirtualPeer, World } from "../testing/test-hub.ts";

const world = () => {
  const w = new World();
  w.user("ann", "lamp", "pump");
  return { w, isOnline: (agentId = "lamp") => w.hub.isOnlineAnywhere("ann", agentId) };
};

it("an agent is known to be offline for five seconds after clients were told so", () => {
  const { w, isOnline } = world();
  expect(isOnline()).toBeNull();
  w.client("ann");
  const lamp = w.agent("lamp");
  expect([isOnline(), isOnline("pump")]).toEqual([true, null]);
  lamp.hangUp();
  w.advance(GONE_KEPT_MS - 100);
  expect([isOnline(), isOnline("pump")]).toEqual([false, null]);
  w.advance(100);
  expect(isOnline()).toBeNull();
});

it("each of several agents that come and go is known to be offline for that long", () => {
  const { w, isOnline } = world();
  w.client("ann");
  w.agent("lamp").hangUp();
  w.advance(1_000);
  w.agent("pump").hangUp();
  w.advance(2_000);
  w.agent("lamp").hangUp();
  w.advance(GONE_KEPT_MS - 2_000);
  expect([isOnline("lamp"), isOnline("pump")]).toEqual([false, null]);
});

it("an agent is not known to be offline if no client was there to be told", () => {
  const { w, isOnline } = world();
  w.agent("pump");
  w.agent("lamp").hangUp();
  expect(isOnline()).toBeNull();
  const client = w.client("ann");
  expect(isOnline()).toBeNull();
  w.agent("lamp").hangUp();
  expect(isOnline()).toBe(false);
  client.hangUp();
  expect(isOnline()).toBeNull();
  w.advance(1);
  w.client("ann");
  expect(isOnline()).toBeNull();
});

it("thousands of agents that are lost with their node are all told of, to one client in many turns", () => {
  const w = new World();
  w.user("ann");
  const client = w.client("ann");
  const agents = Array.from({ length: 10_000 }, (_, i) => ({
    agentId: `${i}`.padStart(60, "a"),
    loginNumber: i,
    onlineForMs: 0,
  }));
  w.hub.remoteAgents.online("ann", "B", agents, true, w.now);
  w.settle();
  expect(client.take()).toHaveLength(agents.length);
  client.stalled = true; // what one turn sends is written after it
  w.hub.remoteAgents.nodeLost("B", w.now);
  expect(client.queued()).toBeLessThan(OUTBOX_BYTES / 2);
  client.read();
  w.settle();
  expect(client.take().map(({ agent_id, online }) => [agent_id, online])).toEqual(
    agents.map(({ agentId }) => [agentId, false]),
  );
  expect(w.hub.counters.controlMessagesDropped).toBe(0);
});

it.each([
  ["a list of thousands of agents is read", (all: OnlineAgent[]) => [all], false],
  [
    "thousands of logins one by one are heard of",
    (all: OnlineAgent[]) => all.map((one) => [one]),
    true,
  ],
])("%s in linear time while as many are queued as lost", (_, messages, isNews) => {
  const grown = growth(100, (n) => {
    const agents = (node: string) =>
      Array.from({ length: n }, (_, i) => ({
        agentId: `${node}${i}`,
        loginNumber: i,
        onlineForMs: 0,
      }));
    const listed = messages(agents("C"));
    return () => {
      const w = new World();
      w.user("ann");
      w.client("ann");
      w.hub.remoteAgents.online("ann", "B", agents("B"), true, w.now);
      w.turn = () => undefined;
      w.hub.remoteAgents.nodeLost("B", w.now);
      for (const agents of listed) w.hub.remoteAgents.online("ann", "C", agents, isNews, w.now);
    };
  });
  expect(grown).toBeLessThan(LINEAR);
});

it("the clients of a key are told over several turns, too, what its selector matches, in order", () => {
  const { w } = world();
  w.store.labels.set("lamp", { site: "hall" });
  w.store.keys.set("hall", { userId: "ann", site: "hall", expiresAtMs: null });
  w.agent("lamp");
  const clients = Array.from({ length: NEWS_PER_TURN + 1 }, () => w.clientWithKey("hall"));
  const turns: (() => void)[] = [];
  w.turn = (happen) => turns.push(happen);
  const relabel = (site: string) => {
    w.store.labels.set("lamp", { site });
    w.hub.relabel("lamp");
    w.settle();
  };
  relabel("cellar");
  turns.shift()?.();
  expect(clients.filter((client) => client.inbox.length > 0)).toHaveLength(NEWS_PER_TURN);
  relabel("hall");
  for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn();
  for (const client of clients) {
    expect(told(client)).toEqual([
      ["lamp", false],
      ["lamp", true],
    ]);
  }
});

/** One client more than are told in one turn, whose turns the test makes. */
const crowd = (w: World) => {
  const clients = Array.from({ length: NEWS_PER_TURN + 1 }, () => w.client("ann"));
  const turns: (() => void)[] = [];
  w.turn = (happen) => turns.push(happen);
  const allTurns = (): void => {
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) turn();
  };
  return { clients, allTurns };
};

const told = (client: VirtualPeer) =>
  client.take().map(({ agent_id, online }) => [agent_id, online]);

it("news is told in order, even if so many clients leave that later news could go out at once", () => {
  const { w } = world();
  const { clients, allTurns } = crowd(w);
  const lamp = w.agent("lamp");
  clients.pop()?.hangUp();
  lamp.hangUp();
  expect(clients.flatMap(told)).toEqual([]);
  allTurns();
  for (const client of clients) {
    expect(told(client)).toEqual([
      ["lamp", true],
      ["lamp", false],
    ]);
  }
});

it("news of one agent that waits does not tell everybody of another that was online already", () => {
  const { w } = world();
  const asking = w.client("ann", true);
  const { clients, allTurns } = crowd(w);
  w.agent("lamp");
  const pump = { agentId: "pump", loginNumber: 1, onlineForMs: 0 };
  w.hub.remoteAgents.online("ann", "B", [pump], false, w.now);
  allTurns();
  w.advance(100);
  for (const client of clients) expect(told(client)).toEqual([["lamp", true]]);
  expect(told(asking)).toEqual([
    ["lamp", true],
    ["pump", true],
  ]);
});

it("a snapshot in progress goes on when another agent turns out to have been online", () => {
  const { w } = world();
  const ids = Array.from({ length: SNAPSHOT_BATCH + 2 }, (_, i) => `a${i}`);
  w.user("ann", ...ids);
  for (const id of ids) w.agent(id);
  const asking = w.client("ann", true);
  const pump = { agentId: "pump", loginNumber: 1, onlineForMs: 0 };
  w.hub.remoteAgents.online("ann", "B", [pump], false, w.now);
  w.advance(1_000);
  expect(told(asking)).toEqual([...ids, "pump"].map((id) => [id, true]));
});

it("as many clients as are told in one turn are told at once, and one more waits for it", () => {
  const { w } = world();
  const clients = Array.from({ length: NEWS_PER_TURN }, () => w.client("ann"));
  const turns: (() => void)[] = [];
  w.turn = (happen) => turns.push(happen);
  const lamp = w.agent("lamp");
  expect(clients.map((client) => client.take().length)).toEqual(clients.map(() => 1));
  clients.push(w.client("ann"));
  lamp.hangUp();
  w.agent("pump");
  const told: number[] = [];
  while (turns.length > 0) {
    turns.shift()?.();
    told.push(clients.reduce((sum, client) => sum + client.take().length, 0));
  }
  expect(told).toEqual([NEWS_PER_TURN, NEWS_PER_TURN, 2]);
});

it("as many notices as fit before a turn go out at once, and the next agent's wait for it", () => {
  const { w } = world();
  const clients = Array.from({ length: NEWS_PER_TURN }, () => w.client("ann"));
  const turns: (() => void)[] = [];
  w.turn = (happen) => turns.push(happen);
  const ids = Array.from({ length: NEWS_AT_ONCE / NEWS_PER_TURN }, (_, i) => `a${i}`);
  const far = [...ids, "lamp"].map((agentId) => ({ agentId, loginNumber: 1, onlineForMs: 0 }));
  w.hub.remoteAgents.online("ann", "B", far, true, w.now);
  for (const client of clients) expect(told(client)).toEqual(ids.map((id) => [id, true]));
  turns.shift()?.();
  for (const client of clients) expect(told(client)).toEqual([["lamp", true]]);
});

it("where only an agent's newest news is kept, that of a key takes nobody else's place", () => {
  const { w } = world();
  w.store.keys.set("hall", { userId: "ann", site: "hall", expiresAtMs: null });
  const ci = w.clientWithKey("hall");
  const { clients, allTurns } = crowd(w);
  const { remoteAgents } = w.hub;
  for (let loginNumber = 1; loginNumber <= NEWS_KEPT / 2; loginNumber++) {
    const far = [{ agentId: "far", loginNumber, onlineForMs: 0 }];
    remoteAgents.online("ann", "B", far, true, w.now);
    remoteAgents.offline("ann", "far", loginNumber, false, w.now);
  }
  const pump = w.agent("pump");
  w.agent("lamp");
  for (const agentId of ["pump", "lamp"]) {
    w.store.labels.set(agentId, { site: "hall" });
    w.hub.relabel(agentId);
  }
  w.settle();
  pump.hangUp();
  allTurns();
  for (const client of clients) {
    expect(told(client).slice(NEWS_KEPT)).toEqual([
      ["lamp", true],
      ["pump", false],
    ]);
  }
  const last = new Map(told(ci).map(([agentId, online]) => [agentId, online]));
  expect(Object.fromEntries(last)).toEqual({ lamp: true, pump: false });
});

it("an agent that turns out to have been online is told alone, or in a snapshot to come", () => {
  const { w } = world();
  const online = (...ids: string[]) => {
    const agents = ids.map((agentId) => ({ agentId, loginNumber: 1, onlineForMs: 0 }));
    w.hub.remoteAgents.online("ann", "B", agents, false, w.now);
  };
  const ids = Array.from({ length: SNAPSHOT_BATCH + 1 }, (_, i) => `a${i}`);
  const had = w.client("ann", true);
  online(...ids);
  w.advance(1_000);
  expect(told(had)).toHaveLength(ids.length);
  const asking = Array.from({ length: SNAPSHOTS_AT_ONCE + 1 }, () => w.client("ann", true));
  online("lamp");
  w.advance(2_000);
  expect(told(had)).toEqual([["lamp", true]]);
  for (const client of asking) expect(told(client)).toHaveLength(ids.length + 1);
});

it("an agent that leaves during a snapshot is not listed, although its news still waits", () => {
  const { w } = world();
  const ids = Array.from({ length: SNAPSHOT_BATCH + 1 }, (_, i) => `a${i}`);
  w.user("ann", ...ids);
  const agents = ids.map((id) => w.agent(id));
  const { allTurns } = crowd(w);
  const asking = w.client("ann", true);
  agents.at(-1)?.hangUp();
  w.advance(1_000);
  expect(told(asking)).toHaveLength(SNAPSHOT_BATCH);
  allTurns();
  expect(told(asking)).toEqual([[ids.at(-1), false]]);
});

it("a client that reads slowly goes on with its snapshot if no other waits for one", () => {
  const w = new World({ outboxBytes: 4_000 });
  const ids = Array.from({ length: 100 }, (_, i) => `a${i}`);
  w.user("ann", ...ids);
  for (const id of ids) w.agent(id);
  const slow = Array.from({ length: SNAPSHOTS_AT_ONCE }, () => w.client("ann", true));
  for (const client of slow) client.stalled = true;
  w.advance(1_000);
  for (const client of slow) client.read();
  w.advance(5_000);
  for (const client of slow) expect(told(client)).toEqual(ids.map((id) => [id, true]));
});
