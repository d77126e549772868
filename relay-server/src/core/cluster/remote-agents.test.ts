/** What a user's clients are told of agents on other nodes, as the bus reports them. */
import { describe, expect, it } from "vitest";
import { ALONE, type OnlineAgent } from "../bus.ts";
import { envelope, packet, type VirtualPeer, World } from "../testing/test-hub.ts";
import { MOVING_MS } from "./remote-agents.ts";

const lamp = (loginNumber: number, onlineForMs = 0): OnlineAgent => ({
  agentId: "lamp",
  loginNumber,
  onlineForMs,
});

/** A node whose client is told of agents elsewhere, and what the bus is asked to bind. */
const node = () => {
  const bound: unknown[] = [];
  const w = new World(
    {},
    {
      ...ALONE,
      deliver: () => "sent",
      bind: (agentId, { connection }, firsts) => bound.push([agentId, connection, firsts]),
    },
  );
  w.user("ann", "lamp", "pump");
  w.user("bob", "bobs");
  const [client, bob] = [w.client("ann"), w.client("bob")];
  const { remoteAgents } = w.hub;
  /** What a client was told since the last call: each agent, and whether it is online. */
  const told = (peer: VirtualPeer = client) =>
    peer.take().map(({ agent_id, online }) => [agent_id, online]);
  return { w, client, bob, remoteAgents, told, bound };
};

describe("an agent on another node", () => {
  it("is told of once, to clients of its user", () => {
    const { w, client, bob, remoteAgents, told } = node();
    remoteAgents.online("ann", "B", [lamp(1)], true, w.now);
    remoteAgents.online("ann", "B", [lamp(1)], true, w.now);
    remoteAgents.online("nobody", "B", [lamp(1)], true, w.now);
    expect([told(), told(bob)]).toEqual([[["lamp", true]], []]);
    expect(w.hub.isOnlineAnywhere("ann", "lamp")).toBe(true);
    remoteAgents.offline("ann", "lamp", 1, false, w.now);
    remoteAgents.offline("ann", "lamp", 1, false, w.now);
    expect([told(), told(bob)]).toEqual([[["lamp", false]], []]);
    client.hangUp();
    remoteAgents.online("ann", "B", [lamp(2)], true, w.now);
    expect(told(w.client("ann", true))).toEqual([]);
  });

  it("that is no news is told only to clients that asked which agents are online", () => {
    const { w, remoteAgents, told } = node();
    const asking = w.client("ann", true);
    remoteAgents.online("ann", "B", [lamp(1)], false, w.now);
    w.advance(1_000);
    expect([told(), told(asking)]).toEqual([[], [["lamp", true]]]);
  });

  it("is not told of while it is here", () => {
    const { w, remoteAgents, told } = node();
    w.agent("lamp");
    expect(told()).toEqual([["lamp", true]]);
    remoteAgents.online("ann", "B", [lamp(0)], true, w.now);
    remoteAgents.offline("ann", "lamp", 0, false, w.now);
    expect(told()).toEqual([]);
  });

  it("is where it logged in last, whatever is said late", () => {
    const { w, remoteAgents, told } = node();
    remoteAgents.online("ann", "B", [lamp(2)], true, w.now);
    remoteAgents.online("ann", "C", [lamp(1)], true, w.now);
    remoteAgents.offline("ann", "lamp", 1, false, w.now);
    remoteAgents.nodeLost("C", w.now);
    expect([told(), remoteAgents.loginsOf("ann")]).toEqual([
      [["lamp", true]],
      new Map([["B", [2]]]),
    ]);
    remoteAgents.online("ann", "C", [lamp(3)], true, w.now);
    remoteAgents.nodeLost("B", w.now);
    expect(told()).toEqual([]);
    remoteAgents.nodeLost("C", w.now);
    expect(told()).toEqual([["lamp", false]]);
  });

  it("that moves stays online for 5 s, and longer if it arrives", () => {
    const { w, remoteAgents, told } = node();
    const pump = { ...lamp(1), agentId: "pump" };
    remoteAgents.online("ann", "B", [lamp(1), pump], true, w.now);
    told();
    for (const agentId of ["lamp", "pump"]) remoteAgents.offline("ann", agentId, 1, true, w.now);
    expect(remoteAgents.loginsOf("ann")).toEqual(new Map());
    w.advance(MOVING_MS - 100);
    expect(w.hub.isOnlineAnywhere("ann", "pump")).toBe(true);
    remoteAgents.online("ann", "C", [lamp(2)], false, w.now);
    expect(told()).toEqual([]);
    w.advance(100);
    expect(told()).toEqual([["pump", false]]);
    w.advance(2 * MOVING_MS);
    expect(told()).toEqual([]);
    expect(remoteAgents.loginsOf("ann")).toEqual(new Map([["C", [2]]]));
  });

  it("that moves here in the end was online all the time", () => {
    const { w, remoteAgents, told } = node();
    remoteAgents.online("ann", "B", [lamp(0)], true, w.now);
    remoteAgents.offline("ann", "lamp", 0, true, w.now);
    told();
    w.agent("lamp");
    w.advance(2 * MOVING_MS);
    expect(told()).toEqual([]);
    expect(w.hub.isOnlineAnywhere("ann", "lamp")).toBe(true);
  });
});

describe("agents are expected elsewhere", () => {
  type Node = ReturnType<typeof node>;

  it.each<[string, (node: Node) => void, unknown[]]>([
    [
      "when their node says that it ends",
      ({ w, remoteAgents }) => remoteAgents.nodeLeft("B", w.now),
      [["lamp", false]],
    ],
    [
      "when their node lists a user's agents anew",
      ({ w, remoteAgents }) => remoteAgents.doubtAt("ann", "B", w.now),
      [["lamp", false]],
    ],
    [
      "all of them, when the bus was silent",
      ({ w, remoteAgents }) => remoteAgents.doubt(w.now),
      [
        ["lamp", false],
        ["pump", false],
      ],
    ],
    [
      "but not when it is another user's",
      ({ w, remoteAgents }) => {
        remoteAgents.doubtAt("bob", "B", w.now);
        remoteAgents.doubtAt("nobody", "B", w.now);
      },
      [],
    ],
  ])("%s", (_, doubt, gone) => {
    const made = node();
    const { w, remoteAgents, told } = made;
    remoteAgents.online("ann", "B", [lamp(1)], true, w.now);
    remoteAgents.online("ann", "C", [{ ...lamp(1), agentId: "pump" }], true, w.now);
    told();
    doubt(made);
    w.advance(MOVING_MS - 100);
    doubt(made); // again, which prolongs nothing
    expect(told()).toEqual([]);
    w.advance(100);
    expect(told()).toEqual(gone);
  });

  it("not, when they were reported again", () => {
    const { w, remoteAgents, told } = node();
    remoteAgents.online("ann", "B", [lamp(1)], true, w.now);
    told();
    remoteAgents.nodeLeft("B", w.now);
    remoteAgents.online("ann", "B", [lamp(1)], false, w.now);
    w.advance(2 * MOVING_MS);
    expect(told()).toEqual([]);
  });
});

it("login numbers are listed by node", () => {
  const { w, remoteAgents } = node();
  remoteAgents.online("ann", "B", [lamp(1), { ...lamp(2), agentId: "pump" }], true, w.now);
  remoteAgents.online("ann", "C", [{ ...lamp(3), agentId: "third" }], true, w.now);
  expect(remoteAgents.loginsOf("ann")).toEqual(
    new Map([
      ["B", [1, 2]],
      ["C", [3]],
    ]),
  );
  expect(remoteAgents.loginsOf("nobody")).toEqual(new Map());
});

it("a new node of an agent is told at once which sessions lead to it", () => {
  const { w, client, remoteAgents, bound } = node();
  remoteAgents.online("ann", "B", [lamp(1)], true, w.now);
  expect(bound).toEqual([]);
  for (const sid of ["C", "D"]) client.say(envelope(packet(sid), { agent_id: "lamp" }));
  remoteAgents.online("ann", "B", [lamp(1)], false, w.now);
  expect(bound).toEqual([]);
  remoteAgents.online("ann", "C", [lamp(2)], false, w.now);
  expect(bound.splice(0)).toEqual([["lamp", 1, ["C", "D"]]]);
  remoteAgents.offline("ann", "lamp", 2, true, w.now);
  remoteAgents.online("ann", "C", [lamp(2)], false, w.now);
  expect(bound.splice(0)).toEqual([["lamp", 1, ["C", "D"]]]);
  remoteAgents.offline("ann", "lamp", 2, false, w.now);
  remoteAgents.online("ann", "C", [lamp(3)], true, w.now);
  expect(bound).toEqual([["lamp", 1, ["C", "D"]]]);
});
