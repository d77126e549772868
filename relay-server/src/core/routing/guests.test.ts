/** Clients of another node that call agents of this one, as the bus hands their messages over. */
import { describe, expect, it } from "vitest";
import { ALONE, type Origin } from "../bus.ts";
import {
  HELD_BYTES,
  HELD_BYTES_PER_USER,
  HELD_OVERHEAD_BYTES,
  TURN_COST,
} from "../limits/limits.ts";
import { envelope, type Fields, packet, World } from "../testing/test-hub.ts";

const ANN: Origin = {
  node: "B",
  connection: 7,
  userId: "ann",
  sessionHash: "#ann",
  isKeyed: false,
};
const KEYED: Origin = { ...ANN, connection: 9, isKeyed: true };
const BOB: Origin = { ...ANN, connection: 8, userId: "bob", sessionHash: "#bob" };

/** A hub whose bus keeps what it is asked to send. */
class Node extends World {
  /** To whom, and what: since the last call. */
  readonly answers: [Origin, Fields][];
  /** From which agent each of them is; null: the relay's own. */
  readonly from: (string | null)[];
  readonly welcomed: Origin[];
  readonly room: { isThere: boolean };

  constructor(clientsPerUser = 10) {
    const answers: [Origin, Fields][] = [];
    const from: (string | null)[] = [];
    const welcomed: Origin[] = [];
    const room = { isThere: true };
    super(
      { clientsPerUser },
      {
        ...ALONE,
        deliver: () => expect.unreachable("a guest's message must not travel on"),
        answer: (to, frame, agentId) => {
          from.push(agentId);
          const text = typeof frame === "string" ? frame : new TextDecoder().decode(frame);
          answers.push([to, JSON.parse(text)]);
        },
        welcome: (guest) => welcomed.push(guest),
        hasRoom: () => room.isThere,
      },
    );
    this.answers = answers;
    this.from = from;
    this.welcomed = welcomed;
    this.room = room;
    this.user("ann", "lamp", "pump");
    this.user("bob", "bobs");
  }

  /** A guest's message, in bytes that the bus uses again afterwards. */
  hear(message: Fields, agentId = "lamp", from = ANN): void {
    const text = JSON.stringify(message);
    const frame = new TextEncoder().encode(text);
    this.hub.guests.receive(from, agentId, text, frame, this.now);
    frame.fill(0);
  }

  codes(): unknown[] {
    return this.answers.splice(0).map(([{ connection }, { code }]) => [connection, code]);
  }
}

const open = (sid: string, agentId = "lamp"): Fields =>
  envelope(packet(sid), { agent_id: agentId });

describe("a message of another node's client", () => {
  it("reaches the agent, whose answer goes back to that client", () => {
    const w = new Node();
    const lamp = w.agent("lamp");
    w.hear(open("C"));
    w.hear(packet("C.A", 2));
    expect(lamp.take()).toEqual([open("C"), packet("C.A", 2)]);
    lamp.say(packet("C.A", 3));
    expect(w.answers).toEqual([[ANN, packet("C.A", 3)]]);
    w.hear(open("D", "pump"), "pump");
    expect(w.from).toEqual(["lamp", null]);
    expect(w.welcomed).toEqual([ANN]);
    expect(w.hub.guests.bindingsOf("ann", "lamp")).toEqual([{ ...ANN, firsts: ["C"] }]);
    expect(w.hub.counters).toMatchObject({ receivedFromNodes: 3, forwardedToNodes: 1 });
  });

  it("that is a bare packet binds its sid, as its node has bound it before", () => {
    const w = new Node();
    const lamp = w.agent("lamp");
    w.hear(packet("C.A", 2));
    lamp.say(packet("C.A", 3));
    expect(w.answers).toEqual([[ANN, packet("C.A", 3)]]);
  });

  it("is refused if the agent is not here, if another user has it, or if the sid is taken", () => {
    const w = new Node();
    w.hear(open("C"));
    expect(w.codes()).toEqual([[7, "AGENT_OFFLINE"]]);
    w.agent("lamp");
    w.hear(open("C"), "lamp", BOB);
    expect(w.codes()).toEqual([[8, "AGENT_NOT_FOUND"]]);
    expect(w.welcomed).toEqual([]);
    w.client("ann").say(open("C"));
    w.hear(packet("C.A", 2));
    expect(w.codes()).toEqual([[7, "SID_IN_USE"]]);
    w.hear(packet(".A", 2));
    expect(w.codes()).toEqual([[7, "UNKNOWN_SESSION"]]);
    expect(w.hub.guests.bindingsOf("ann", "lamp")).toMatchObject([{ node: null, firsts: ["C"] }]);
  });

  it("is refused for a guest beyond the clients that its node lets in, and for no other node's", () => {
    const w = new Node(1);
    const lamp = w.agent("lamp");
    w.hear(open("C"));
    w.hear(open("D"), "lamp", KEYED); // access keys have a limit of their own
    expect(w.codes()).toEqual([]);
    w.hear(open("E"), "lamp", { ...ANN, connection: 10 });
    w.hear(open("E"), "lamp", { ...KEYED, connection: 11 });
    expect(w.codes()).toEqual([
      [10, "UNAVAILABLE"],
      [11, "UNAVAILABLE"],
    ]);
    w.hear(open("F"), "lamp", { ...ANN, node: "C" });
    w.hear(open("G"));
    expect(lamp.take()).toHaveLength(4);
  });

  it("is answered, but not taken, if there is no room for it", () => {
    const w = new Node();
    w.agent("lamp");
    w.hub.guests.turnAway(ANN, JSON.stringify(packet("C.A")), w.now);
    w.hub.guests.turnAway(ANN, JSON.stringify(open("C")), w.now);
    expect(w.answers.map(([, { sid }]) => sid)).toEqual(["C.A", "C"]);
    expect(w.codes()).toEqual([
      [7, "SLOW_CONSUMER"],
      [7, "SLOW_CONSUMER"],
    ]);
    expect(w.hub.counters.receivedFromNodes).toBe(0);
  });

  it("that cannot be answered, because the bus has no room, leaves nothing behind", () => {
    const w = new Node();
    const before = w.hub.stats().connections;
    w.room.isThere = false;
    w.hear(open("C"));
    expect(w.answers).toEqual([]);
    expect(w.hub.stats().slowConnections).toBe(0);
    w.advance(31_000);
    expect(w.hub.stats().connections).toEqual(before);
    expect(w.hub.counters.closedForSlowness).toBe(0);
  });

  it("that is neither an envelope nor a packet is ignored", () => {
    const w = new Node();
    w.agent("lamp");
    w.hear({ type: "ping" });
    w.hub.guests.turnAway(ANN, '{"type":"ping"}', w.now);
    w.hear({ type: "relay", payload: "x" });
    expect([w.answers, w.hub.counters.receivedFromNodes]).toEqual([[], 1]);
  });
});

describe("an agent's message for a guest", () => {
  it("is refused while the bus has no room", () => {
    const w = new Node();
    const lamp = w.agent("lamp");
    w.hear(open("C"));
    lamp.take();
    w.room.isThere = false;
    lamp.say(packet("C.A", 3));
    expect(lamp.codes()).toEqual(["SLOW_CONSUMER"]);
    expect(w.answers).toEqual([]);
  });

  it("that its node had no room for is an error to the agent, if it is still here", () => {
    const w = new Node();
    const lamp = w.agent("lamp");
    const subject = { sid: "C.A", requestId: null };
    w.hub.guests.refused("lamp", "SLOW_CONSUMER", subject, w.now);
    w.hub.guests.refused("pump", "SLOW_CONSUMER", subject, w.now);
    expect(lamp.take()).toMatchObject([{ code: "SLOW_CONSUMER", sid: "C.A" }]);
  });
});

describe("a guest that sends much", () => {
  const many = 2 * TURN_COST;

  /** A node on which a guest has sent `many` messages, and no turn has come since. */
  const crowded = () => {
    const w = new Node();
    const turns: (() => void)[] = [];
    w.turn = (happen) => turns.push(happen);
    const lamp = w.agent("lamp");
    for (let n = 0; n < many; n++) w.hear(packet("C.A", n));
    const next = () => {
      for (const happen of turns.splice(0)) happen();
    };
    return { w, lamp, next };
  };

  const seqs = (messages: Fields[]): unknown[] => messages.map(({ seq }) => seq);
  const all = Array.from({ length: many }, (_, n) => n);

  it("waits for its user's next turns, in order, and loses nothing", () => {
    const { lamp, next } = crowded();
    const first = seqs(lamp.take());
    expect(first).toEqual(all.slice(0, first.length));
    expect(first.length).toBeLessThan(many);
    next();
    const second = seqs(lamp.take());
    expect(second.length).toBeGreaterThan(0);
    expect(first.length + second.length).toBeLessThan(many);
    for (let n = 0; n < 10; n++) next();
    expect([...first, ...second, ...seqs(lamp.take())]).toEqual(all);
  });

  it("with an access key takes no turns and no room from its account's other guests", () => {
    const guests = HELD_BYTES_PER_USER / HELD_BYTES + 1;
    const w = new Node(guests);
    w.turn = () => undefined;
    const lamp = w.agent("lamp");
    const quarter =
      HELD_BYTES / 4 - HELD_OVERHEAD_BYTES - JSON.stringify(packet("K.A", 1, "")).length;
    const large = packet("K.A", 1, "A".repeat(quarter));
    for (let n = 0; n < 5 * guests; n++) {
      w.hear(large, "lamp", { ...KEYED, connection: 9 + Math.floor(n / 5) });
    }
    expect(w.codes().length).toBeGreaterThan(0);
    lamp.take();
    w.hear(packet("C.A", 1));
    expect(seqs(lamp.take())).toEqual([1]);
    for (let n = 0; n < many; n++) w.hear(packet("C.A", n));
    expect(w.codes()).toEqual([]);
  });

  it("is heard to the end if it leaves meanwhile, and is gone then", () => {
    const { w, lamp, next } = crowded();
    const before = seqs(lamp.take());
    w.hub.guests.left("B", 7, w.now);
    w.hub.guests.left("B", 7, w.now);
    expect(lamp.take()).toEqual([]);
    for (let n = 0; n < 10; n++) next();
    expect([...before, ...seqs(lamp.take())]).toEqual(all);
    lamp.say(packet("C.A", 3));
    expect(lamp.codes()).toEqual(["UNKNOWN_SESSION"]);
  });

  it("is not handled if its node is lost meanwhile, even after it left", () => {
    const { w, lamp, next } = crowded();
    lamp.take();
    w.hub.guests.left("B", 7, w.now);
    w.hub.guests.nodeLost("B", w.now);
    w.hub.guests.left("B", 7, w.now);
    for (let n = 0; n < 10; n++) next();
    expect([lamp.take(), w.codes()]).toEqual([[], []]);
  });

  it("is told that the agent is offline if that left meanwhile", () => {
    const { w, lamp, next } = crowded();
    w.agent("pump"); // for which it stays
    const before = lamp.take().length;
    lamp.hangUp();
    for (let n = 0; n < 10; n++) next();
    expect(w.codes()).toEqual(Array(many - before).fill([7, "AGENT_OFFLINE"]));
  });

  it("is refused what exceeds the bytes that may wait", () => {
    const { w } = crowded();
    w.hear(packet("C.A", 1, "A".repeat(HELD_BYTES)));
    expect(w.codes()).toEqual([[7, "RATE_LIMITED"]]);
  });
});

describe("bindings that another node hands over", () => {
  it("are a guest's, unless a client here has taken them meanwhile", () => {
    const w = new Node();
    const lamp = w.agent("lamp");
    const client = w.client("ann");
    client.say(open("D"));
    w.hub.guests.bind(ANN, "lamp", ["C", "D"], w.now);
    lamp.take();
    lamp.say(packet("C.A", 3));
    expect(w.answers).toEqual([[ANN, packet("C.A", 3)]]);
    lamp.say(packet("D.A", 4));
    expect(client.take()).toEqual([packet("D.A", 4)]);
    expect(w.hub.guests.bindingsOf("ann", "lamp")).toEqual([
      expect.objectContaining({ node: null, userId: "ann", firsts: ["D"] }),
      { ...ANN, firsts: ["C"] },
    ]);
  });

  it("change nothing if the agent is not here, is another user's, or has too many guests", () => {
    const w = new Node(1);
    w.hub.guests.bind(ANN, "lamp", ["C"], w.now);
    w.agent("lamp");
    w.hub.guests.bind(BOB, "lamp", ["C"], w.now);
    expect(w.welcomed).toEqual([]);
    w.hub.guests.bind(ANN, "lamp", ["C"], w.now);
    w.hub.guests.bind(KEYED, "lamp", ["D"], w.now);
    w.hub.guests.bind({ ...ANN, connection: 10 }, "lamp", ["E"], w.now);
    expect(w.hub.guests.bindingsOf("ann", "lamp")).toEqual([
      { ...ANN, firsts: ["C"] },
      { ...KEYED, firsts: ["D"] },
    ]);
    expect(w.hub.guests.bindingsOf("bob", "lamp")).toEqual([]);
  });
});

describe("a guest", () => {
  const bound = (w: Node): unknown[] => w.hub.guests.bindingsOf("ann", "lamp");

  it("is named to its node again every 30 s, so that a lost farewell does not keep it", () => {
    const w = new Node();
    w.agent("lamp");
    w.hear(open("C"));
    const refresh = () => w.hub.guests.refresh(() => true, w.now);
    w.advance(29_900);
    refresh();
    expect(w.welcomed).toHaveLength(1);
    w.advance(100);
    refresh();
    refresh();
    expect(w.welcomed).toEqual([ANN, ANN]);
    w.hub.guests.left("B", 7, w.now);
    w.advance(30_000);
    refresh();
    expect(w.welcomed).toHaveLength(2);
  });

  it("is named again 30 s after it was last named, whoever else was named meanwhile", () => {
    const w = new Node();
    w.agent("lamp");
    const later = { ...ANN, connection: 9 };
    const refresh = (afterMs: number) => {
      w.advance(afterMs);
      w.hub.guests.refresh(() => true, w.now);
    };
    w.hear(open("C"));
    w.advance(10_000);
    w.hear(open("D"), "lamp", later);
    refresh(20_000);
    refresh(10_000);
    refresh(20_000);
    expect(w.welcomed).toEqual([ANN, later, ANN, later, ANN]);
  });

  it("leaves with its node, which may be found to be gone or be reported as gone", () => {
    const w = new Node();
    w.agent("lamp");
    w.hear(open("C"));
    w.advance(30_000);
    w.hub.guests.refresh((node) => node !== "B", w.now);
    expect([bound(w), w.welcomed]).toEqual([[], [ANN]]);
    w.hear(open("C"));
    w.hub.guests.nodeLost("C", w.now);
    expect(bound(w)).toHaveLength(1);
    w.hub.guests.nodeLost("B", w.now);
    expect(bound(w)).toEqual([]);
  });

  it("leaves with its user's last agent here", () => {
    const w = new Node();
    const lamp = w.agent("lamp");
    w.hear(open("C"));
    lamp.hangUp();
    expect(bound(w)).toEqual([]);
  });
});

it("a node that asks a share of its peers to move expects them elsewhere until 5 s after the last left", () => {
  const w = new Node();
  const ids = Array.from({ length: 10 }, (_, i) => `a${i}`);
  w.user("ann", ...ids);
  const agents = ids.map((id) => w.agent(id));
  w.connect(); // has not logged in, and is not asked
  expect(w.hub.rebalance(30)).toEqual({ links: 10, asked: 3 });
  w.advance(100);
  const asked = agents.filter((agent) => agent.take().length > 0);
  for (const [left, agent] of asked.entries()) {
    expect(w.hub.yetToMove).toBe(3 - left);
    agent.hangUp();
  }
  const call = () => {
    w.hear(open("C", "a1"), "a1");
    return [w.hub.yetToMove, ...w.codes()];
  };
  w.advance(4_900);
  expect(call()).toEqual([0, [7, "UNAVAILABLE"]]);
  w.advance(100);
  expect(call()).toEqual([null, [7, "AGENT_OFFLINE"]]);
});
