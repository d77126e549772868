/** Messages of this node's clients to agents on other nodes, and what comes back. */
import { MAX_BINDINGS_PER_CONNECTION } from "@blindrelay/protocol";
import { describe, expect, it } from "vitest";
import { ALONE, type Dispatch } from "../bus.ts";
import { envelope, type Fields, hashOf, packet, World } from "../testing/test-hub.ts";

/** A node with a client, and a bus that keeps what it is asked to send. */
const node = (limits = {}) => {
  const sent: { agentId: string; from: object; ticket: number; text: string }[] = [];
  const bus: unknown[] = [];
  const state = { dispatch: "sent" as Dispatch };
  const w = new World(limits, {
    ...ALONE,
    deliver: (agentId, from, ticket, frame) => {
      sent.push({ agentId, from, ticket, text: new TextDecoder().decode(frame) });
      return state.dispatch;
    },
    leave: (connection, nodes) => bus.push(["leave", connection, [...nodes]]),
    refuse: (to, agentId, code, { sid, requestId }) =>
      bus.push(["refuse", to, agentId, code, sid, requestId]),
  });
  w.user("ann", "lamp", "pump");
  w.user("bob", "bobs");
  w.store.labels.set("lamp", { site: "hall" });
  w.store.keys.set("hall", { userId: "ann", site: "hall", expiresAtMs: null });
  /** A message from another node's agent, or that node itself, for a client of this one. */
  const arrive = (connection: number, message: Fields, agentId: string | null = "lamp") => {
    const text = JSON.stringify(message);
    const frame = new TextEncoder().encode(text);
    return w.hub.remoteRouting.arrive(connection, "B", agentId, text, frame, w.now);
  };
  return { w, sent, bus, state, arrive, remoteRouting: w.hub.remoteRouting };
};

const open = (sid: string, agentId = "lamp", more: Fields = {}): Fields =>
  envelope(packet(sid), { agent_id: agentId, ...more });

describe("a message to an agent that is not here", () => {
  it("goes to the bus with the identity of its client, and a ticket of its own", () => {
    const { w, sent } = node();
    const [ann, bob] = [w.client("ann"), w.client("bob")];
    ann.say(open("C"));
    ann.say(packet("C.A", 2));
    bob.say(open("D", "bobs"));
    const from = {
      connection: 1,
      userId: "ann",
      sessionHash: hashOf(ann.session),
      isKeyed: false,
    };
    expect(sent).toEqual([
      { agentId: "lamp", from, ticket: 1, text: JSON.stringify(open("C")) },
      { agentId: "lamp", from, ticket: 2, text: JSON.stringify(packet("C.A", 2)) },
      {
        agentId: "bobs",
        from: { ...from, connection: 2, userId: "bob", sessionHash: hashOf(bob.session) },
        ticket: 3,
        text: JSON.stringify(open("D", "bobs")),
      },
    ]);
    const bytes = sent.reduce((sum, { text }) => sum + text.length, 0);
    expect(w.hub.counters).toMatchObject({ forwardedToNodes: 3, forwardedBytes: bytes });
    expect([ann.take(), bob.take()]).toEqual([[], []]);
  });

  it("names the session token that its client renews", () => {
    const { w, sent } = node();
    const { session } = w.client("ann");
    const peer = w.connect();
    peer.say({ type: "auth", client_type: "client", api_token: "acct:ann", renews: session });
    peer.say(open("C"));
    expect(sent).toMatchObject([{ from: { renews: hashOf(session) } }]);
  });

  it.each<[Dispatch, string]>([
    ["offline", "AGENT_OFFLINE"],
    ["unavailable", "UNAVAILABLE"],
  ])("is refused where the bus finds it %s", (dispatch, code) => {
    const { w, state, remoteRouting } = node();
    state.dispatch = dispatch;
    const client = w.client("ann");
    client.say(open("C", "lamp", { request_id: "r" }));
    expect(client.take()).toMatchObject([{ code, sid: "C", request_id: "r" }]);
    expect(w.hub.counters.forwardedToNodes).toBe(0);
    remoteRouting.nobody(1, w.now);
    expect(client.take()).toEqual([]);
  });

  it("is refused once, and as its sender wrote it, if no node has the agent", () => {
    const { w, remoteRouting } = node();
    const client = w.client("ann");
    client.say(open("C", "lamp", { request_id: "r" }));
    remoteRouting.nobody(7, w.now);
    expect(client.take()).toEqual([]);
    for (let times = 0; times < 2; times++) remoteRouting.nobody(1, w.now);
    expect(client.take()).toMatchObject([{ code: "AGENT_OFFLINE", sid: "C", request_id: "r" }]);
  });

  it("may be sent again if no node has an agent that was online until now", () => {
    const { w, remoteRouting } = node();
    const client = w.client("ann");
    const there = { agentId: "lamp", loginNumber: 1, onlineForMs: 0 };
    w.hub.remoteAgents.online("ann", "B", [there], false, w.now);
    client.say(open("C"));
    remoteRouting.nobody(1, w.now);
    expect(client.codes()).toEqual(["UNAVAILABLE"]);
  });

  it("is remembered until 13 MiB are, so that long sids do not fill the memory", () => {
    const { w, sent, remoteRouting } = node();
    const client = w.client("ann");
    const long = (n: number) => `C.${n}${"A".repeat(60_000)}`;
    for (let n = 1; n <= 300; n++) client.say(open(long(n)));
    expect(sent).toHaveLength(300);
    remoteRouting.nobody(1, w.now);
    expect(client.take()).toEqual([]);
    remoteRouting.nobody(300, w.now);
    expect(client.take()).toMatchObject([{ code: "AGENT_OFFLINE", sid: long(300) }]);
    w.advance(3_000);
    for (let n = 1; n <= 200; n++) client.say(open(long(n)));
    remoteRouting.nobody(301, w.now);
    expect(client.take()).toMatchObject([{ code: "AGENT_OFFLINE", sid: long(1) }]);
  });

  it("is not refused after three seconds, nor when its client has left", () => {
    const { w, remoteRouting } = node();
    const [late, soon, gone] = [w.client("ann"), w.client("ann"), w.client("ann")];
    late.say(open("C"));
    w.advance(100);
    soon.say(open("D"));
    gone.say(open("E"));
    gone.hangUp();
    w.advance(2_900);
    for (const ticket of [1, 2, 3]) remoteRouting.nobody(ticket, w.now);
    expect([late.take(), soon.codes(), gone.take()]).toEqual([[], ["AGENT_OFFLINE"], []]);
  });
});

describe("a message from another node", () => {
  it("reaches the client that it is for, and no other", () => {
    const { w, arrive } = node();
    const [first, second] = [w.client("ann"), w.client("ann")];
    first.say(open("C"));
    second.say(open("D"));
    expect(arrive(2, packet("D.A"))).toBe(true);
    expect(arrive(3, packet("D.A"))).toBe(false);
    expect([first.take(), second.take()]).toEqual([[], [packet("D.A")]]);
    expect(w.hub.counters.forwardedToClients).toBe(1);
    expect(arrive(1, { type: "error", code: "UNAVAILABLE" }, null)).toBe(true);
    expect(first.codes()).toEqual(["UNAVAILABLE"]);
    expect(w.hub.counters.forwardedToClients).toBe(1);
  });

  it("reaches a client with an access key only from agents that it sees", () => {
    const { w, arrive } = node();
    const ci = w.clientWithKey("hall");
    ci.say(open("C"));
    const messages = [
      packet("C.A"),
      envelope(packet("C.A")),
      envelope("answer", { agent_id: "lamp", request_id: "r" }),
    ];
    for (const message of messages) expect(arrive(1, message, "pump")).toBe(true);
    expect([ci.take(), w.dropped()]).toEqual([[], { AGENT_NOT_FOUND: messages.length }]);
    for (const message of messages) expect(arrive(1, message, "lamp")).toBe(true);
    expect(ci.take()).toEqual(messages);
    arrive(1, { type: "error", code: "UNAVAILABLE" }, null);
    expect(ci.codes()).toEqual(["UNAVAILABLE"]);
    w.store.labels.set("lamp", { site: "cellar" });
    w.hub.relabel("lamp");
    w.settle();
    ci.take();
    arrive(1, packet("C.A"));
    expect(ci.take()).toEqual([]);
  });

  it("reaches the old link of a client with an access key after its new one took the sid over", () => {
    const { w, arrive } = node();
    const [old, renewed] = [w.clientWithKey("hall"), w.clientWithKey("hall")];
    old.say(open("B"));
    renewed.say(open("C"));
    expect(arrive(1, packet("C.A"))).toBe(true);
    expect(old.take()).toEqual([packet("C.A")]);
    old.hangUp();
    renewed.say(packet("C.A", 2));
    expect(renewed.codes()).toEqual([]);
  });

  it("does not reach a client with an access key that binds a hidden agent's sid to another", () => {
    const { w, arrive } = node();
    w.store.labels.set("pump", { site: "hall" });
    const ci = w.clientWithKey("hall");
    ci.say(open("C"));
    w.store.labels.set("lamp", { site: "cellar" });
    w.hub.relabel("lamp");
    w.settle();
    for (let n = 0; n < MAX_BINDINGS_PER_CONNECTION; n++) ci.say(open(`D${n}`, "pump"));
    ci.say(open("C", "pump"));
    ci.take();
    arrive(1, packet("C.A"), "lamp");
    expect(ci.take()).toEqual([]);
  });

  it("for a client that does not read is dropped, and its agent is told", () => {
    const { w, bus, arrive } = node({ outboxBytes: 1_000 });
    const client = w.client("ann");
    client.say(open("C"));
    client.stalled = true;
    const large = packet("C.A", 1, "A".repeat(900));
    arrive(1, large);
    expect(bus).toEqual([]);
    const enveloped = envelope("x".repeat(900), { agent_id: "pump", request_id: "r" });
    arrive(1, large, "lamp");
    arrive(1, enveloped, "pump");
    arrive(1, { type: "other", text: "x".repeat(900) }, "pump");
    expect(bus).toEqual([
      ["refuse", "B", "lamp", "SLOW_CONSUMER", "C.A", null],
      ["refuse", "B", "pump", "SLOW_CONSUMER", null, "r"],
    ]);
    expect(w.dropped()).toEqual({ SLOW_CONSUMER: 3 });
    const { controlMessagesDropped } = w.hub.counters;
    arrive(1, { type: "error", code: "UNAVAILABLE", error: "x".repeat(900) }, null);
    expect(w.hub.counters.controlMessagesDropped).toBe(controlMessagesDropped + 1);
    expect(bus).toHaveLength(2);
  });
});

it("nodes that know a client as a guest are told when it leaves", () => {
  const { w, bus, arrive, remoteRouting } = node();
  const [client, quiet] = [w.client("ann"), w.client("ann")];
  expect(remoteRouting.welcomed(1, "B")).toBe(false);
  client.say(open("C"));
  for (const name of ["B", "C", "B"]) expect(remoteRouting.welcomed(1, name)).toBe(true);
  quiet.hangUp();
  expect(bus).toEqual([]);
  client.hangUp();
  expect(bus).toEqual([["leave", 1, ["B", "C"]]]);
  expect([remoteRouting.welcomed(1, "B"), arrive(1, packet("C.A"))]).toEqual([false, false]);
});
