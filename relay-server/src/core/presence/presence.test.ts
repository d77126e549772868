/** What a node answers about an agent, from what it told its clients; the rest: connection-life. */
import { OUTBOX_BYTES } from "@blindrelay/protocol";
import { expect, it } from "vitest";
import { GONE_KEPT_MS, NEWS_PER_TURN, SNAPSHOT_BATCH } from "../limits/limits.ts";
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
