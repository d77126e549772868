import { describe, expect, it } from "vitest";
import { Leaving } from "../connections/leaving.ts";
import { envelope, type Fields, packet, type VirtualPeer, World } from "../testing/test-hub.ts";

/** Ann with two agents and a client, Bob with one of each. */
const world = () => {
  const w = new World();
  w.user("ann", "lamp", "pump", "away");
  w.user("bob", "bobs");
  const [lamp, pump, bobs] = [w.agent("lamp"), w.agent("pump"), w.agent("bobs")];
  return { w, lamp, pump, bobs, ann: w.client("ann"), bob: w.client("bob") };
};

const to = (agentId: string, payload: Fields | string, more: Fields = {}): Fields =>
  envelope(payload, { agent_id: agentId, ...more });

describe("an envelope from a client", () => {
  it("reaches its agent with exactly the bytes that were sent", () => {
    const { ann, lamp } = world();
    const text =
      ' {"request_id":"r", "payload":"{\\"v\\":\\"1\\",\\"sid\\":\\"C\\",\\"seq\\":0,\\"p\\":\\"\\"}",' +
      '"signature":"s","agent_id":"lamp","type":"relay","later":[1,  2]} ';
    const sent = ann.say(text);
    expect(lamp.takeFrames()[0]).toBe(sent);
    expect(ann.take()).toEqual([]);
  });

  it("to an agent that does not exist: AGENT_NOT_FOUND, with sid and request_id", () => {
    const { ann } = world();
    ann.say(to("nobody", packet("C.A"), { request_id: "r1" }));
    expect(ann.take()).toMatchObject([
      { type: "error", code: "AGENT_NOT_FOUND", sid: "C.A", request_id: "r1" },
    ]);
  });

  it("to somebody else's agent, online or not: AGENT_NOT_FOUND, and nothing arrives", () => {
    const { w, ann, bobs } = world();
    w.user("bob", "bobs-other");
    ann.say(to("bobs", packet("C")));
    ann.say(to("bobs-other", packet("C")));
    ann.say(packet("C"));
    expect(ann.codes()).toEqual(["AGENT_NOT_FOUND", "AGENT_NOT_FOUND", "UNKNOWN_SESSION"]);
    expect(bobs.take()).toEqual([]);
  });

  it("to an agent_id of invalid form: AGENT_NOT_FOUND without asking the store", () => {
    const { w, ann } = world();
    w.slowStore = true;
    ann.say(to("no such id", "x"));
    expect(ann.codes()).toEqual(["AGENT_NOT_FOUND"]);
  });

  it("to the user's own offline agent: AGENT_OFFLINE", () => {
    const { ann } = world();
    ann.say(to("away", packet("C"), { request_id: "r" }));
    expect(ann.take()).toMatchObject([{ code: "AGENT_OFFLINE", sid: "C", request_id: "r" }]);
  });

  it("binds even if its agent is offline, so that a bare packet reaches it later", () => {
    const { w, ann } = world();
    ann.say(to("away", packet("C")));
    const away = w.agent("away");
    ann.take();
    ann.say(packet("C.A"));
    expect(away.take()).toMatchObject([{ sid: "C.A" }]);
  });

  it("is refused once its agent's link only waits for answers: UNAVAILABLE", () => {
    const { w, ann, lamp } = world();
    const leaving = new Leaving();
    lamp.connection.leaving = leaving;
    ann.say(to("lamp", packet("C")));
    expect(lamp.take()).toHaveLength(1);
    leaving.isClosed = true;
    ann.say(packet("C.A"));
    expect([ann.codes(), lamp.take(), leaving.isDrained]).toEqual([["UNAVAILABLE"], [], false]);
    lamp.say(packet("C.A"));
    expect([leaving.isDrained, w.dropped()]).toEqual([true, { UNAVAILABLE: 1 }]);
  });

  it("waits for the store's answer about the owner, and later messages wait behind it", () => {
    const { w, ann } = world();
    w.slowStore = true;
    ann.say(to("away", packet("C")));
    ann.say(packet("C.A"));
    expect(ann.take()).toEqual([]);
    w.answer();
    expect(ann.take()).toMatchObject([
      { code: "AGENT_OFFLINE", sid: "C" },
      { code: "AGENT_OFFLINE", sid: "C.A" },
    ]);
  });

  it("is not found when its agent was deleted during the look-up", () => {
    const { w, ann } = world();
    w.slowStore = true;
    ann.say(to("away", "x"));
    w.hub.forgetAgent("away", "REVOKED", w.now);
    w.store.owners.delete("away");
    w.answer(); // from before
    w.answer();
    expect(ann.codes()).toEqual(["AGENT_NOT_FOUND"]);
    w.slowStore = false;
    ann.say(to("away", "x"));
    expect(ann.codes()).toEqual(["AGENT_NOT_FOUND"]);
  });

  it("leaves nothing behind of an owner who was deleted during the look-up", () => {
    const { w, ann } = world();
    w.user("eve", "reused");
    w.slowStore = true;
    ann.say(to("reused", "x"));
    w.hub.endUser("eve", "REVOKED", w.now);
    w.user("ann", "reused"); // another agent of that name
    w.slowStore = false;
    w.settle();
    expect(ann.codes()).toEqual(["AGENT_OFFLINE"]);
    ann.say(to("reused", "x"));
    expect(ann.codes()).toEqual(["AGENT_OFFLINE"]);
  });

  it.each<[number, string, (w: World) => void]>([
    [
      1,
      "what concerns others was revoked",
      (w) => {
        w.hub.endAgent("bobs", "REVOKED", w.now);
        w.hub.endClients("bob", "REVOKED", w.now);
        w.hub.endUser("bob", "REVOKED", w.now);
        w.hub.endKey("k", "REVOKED", w.now);
      },
    ],
    [2, "its agent's token was renewed", (w) => w.hub.endAgent("away", "REVOKED", w.now)],
    [
      2,
      "more was revoked than is remembered",
      (w) => {
        for (let i = 0; i <= 1000; i++) w.hub.endSession(`#${i}`, "REVOKED", w.now);
      },
    ],
  ])("is looked up %i times, and goes on, if %s during the look-up", (times, _what, revoke) => {
    const { w, ann } = world();
    w.slowStore = true;
    ann.say(to("away", packet("C")));
    ann.say(packet("C.A"));
    revoke(w);
    let answers = 0;
    for (; w.lookUps.length > 0; answers++) w.answer();
    ann.say(to("away", packet("D"))); // its owner is known now
    expect(ann.take()).toMatchObject(
      ["C", "C.A", "D"].map((sid) => ({ code: "AGENT_OFFLINE", sid })),
    );
    expect(answers).toBe(times);
  });

  it("is not found once its agent was deleted, although its owner was known", () => {
    const { w, ann } = world();
    ann.say(to("away", "x"));
    w.hub.forgetAgent("away", "REVOKED", w.now);
    w.store.owners.delete("away");
    ann.say(to("away", "x"));
    expect(ann.codes()).toEqual(["AGENT_OFFLINE", "AGENT_NOT_FOUND"]);
  });

  it("goes to the user's own agent, although a deleted user had one of that name", () => {
    const { w, ann } = world();
    w.user("eve", "reused");
    ann.say(to("reused", "x"));
    w.hub.endUser("eve", "REVOKED", w.now);
    w.user("ann", "reused");
    ann.say(to("reused", "x"));
    expect(ann.codes()).toEqual(["AGENT_NOT_FOUND", "AGENT_OFFLINE"]);
  });

  it("gets UNAVAILABLE while the store is unavailable, and the connection stays open", () => {
    const { w, ann, lamp } = world();
    w.store.broken = true;
    ann.say(to("away", packet("C")));
    expect(ann.take()).toMatchObject([{ code: "UNAVAILABLE", sid: "C" }]);
    ann.say(to("lamp", packet("D")));
    expect(lamp.take()).toHaveLength(1);
  });

  it("is counted as dropped if the sender left during the look-up", () => {
    const { w, ann } = world();
    w.slowStore = true;
    ann.say(to("away", "x"));
    ann.hangUp();
    w.answer();
    expect(w.dropped()).toEqual({ SENDER_LEFT: 1 });
  });

  it("with a payload that is not a packet is forwarded without binding", () => {
    const { ann, lamp } = world();
    for (const payload of ["hello", "{", "[]", '{"v":"1","sid":"C","p":""}', "null"]) {
      ann.say(to("lamp", payload));
    }
    ann.say(to("lamp", { ...packet("C"), type: "x" }));
    ann.say(to("lamp", { ...packet("C"), seq: 1.5 }));
    expect(lamp.take()).toHaveLength(7);
    ann.say(packet("C"));
    expect(ann.codes()).toEqual(["UNKNOWN_SESSION"]);
  });

  it("with an object instead of a text is refused and binds nothing, even if it is a packet", () => {
    const { ann, lamp } = world();
    ann.say({ type: "relay", agent_id: "lamp", payload: packet("C") });
    ann.say(packet("C.A"));
    expect(ann.codes()).toEqual(["BAD_MESSAGE", "UNKNOWN_SESSION"]);
    expect(lamp.take()).toEqual([]);
  });

  it("with a first part of 0 or 65 characters is forwarded and not bound", () => {
    const { ann, lamp } = world();
    for (const sid of ["", ".A", "C".repeat(65)]) {
      ann.say(to("lamp", packet(sid)));
      ann.say(packet(sid));
    }
    expect(lamp.take()).toHaveLength(3);
    expect(ann.codes()).toEqual(Array(3).fill("UNKNOWN_SESSION"));
    ann.say(to("lamp", packet("C".repeat(64))));
    ann.say(packet(`${"C".repeat(64)}.A`));
    expect(lamp.take()).toHaveLength(2);
  });
});

describe("a bare packet from a client", () => {
  it("goes to the agent its first part is bound to, with exactly the bytes that were sent", () => {
    const { ann, lamp, pump } = world();
    ann.say(to("lamp", packet("C")));
    ann.say(to("pump", packet("D")));
    lamp.takeFrames();
    const sent = ann.say({ ...packet("C.A"), unknown: { field: true } });
    expect(lamp.takeFrames()[0]).toBe(sent);
    expect(pump.take()).toHaveLength(1);
  });

  it("without a binding: UNKNOWN_SESSION with the full sid", () => {
    const { ann } = world();
    ann.say(packet("C.A"));
    expect(ann.take()).toMatchObject([{ code: "UNKNOWN_SESSION", sid: "C.A" }]);
    expect(ann.closed).toBeNull();
  });

  it("does not use another user's binding of the same first part", () => {
    const { ann, bob, lamp, bobs } = world();
    ann.say(to("lamp", packet("C")));
    bob.say(packet("C.A"));
    expect(bob.codes()).toEqual(["UNKNOWN_SESSION"]);
    bob.say(to("bobs", packet("C")));
    bob.say(packet("C.A"));
    expect(bob.take()).toEqual([]);
    expect(lamp.take()).toHaveLength(1);
    expect(bobs.take()).toHaveLength(2);
  });

  it("to an offline agent: AGENT_OFFLINE; the binding outlives the agent's reconnect", () => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    lamp.hangUp();
    ann.take();
    ann.say(packet("C.A"));
    expect(ann.take()).toMatchObject([{ code: "AGENT_OFFLINE", sid: "C.A" }]);
    const again = w.agent("lamp");
    ann.take();
    ann.say(packet("C.A"));
    again.say(packet("C.A"));
    expect(again.take()).toMatchObject([{ sid: "C.A" }]);
    expect(ann.take()).toMatchObject([{ sid: "C.A" }]);
  });

  it("to an agent that was deleted: UNKNOWN_SESSION", () => {
    const { w, ann } = world();
    ann.say(to("lamp", packet("C")));
    w.hub.forgetAgent("lamp", "REVOKED", w.now);
    ann.take();
    ann.say(packet("C.A"));
    expect(ann.codes()).toEqual(["UNKNOWN_SESSION"]);
  });
});

describe("the first binder", () => {
  it("keeps the sid from another connection of the same user, enveloped and bare", () => {
    const { w, ann, lamp } = world();
    const other = w.client("ann");
    ann.say(to("lamp", packet("C")));
    other.say(to("lamp", packet("C.A"), { request_id: "r" }));
    other.say(packet("C.A"));
    expect(other.take()).toMatchObject([
      { code: "SID_IN_USE", sid: "C.A", request_id: "r" },
      { code: "SID_IN_USE", sid: "C.A" },
    ]);
    expect(lamp.take()).toHaveLength(1);
  });

  it("keeps it from another agent for the same sid", () => {
    const { ann, pump } = world();
    ann.say(to("lamp", packet("C")));
    ann.say(to("pump", packet("C")));
    expect(ann.codes()).toEqual(["SID_IN_USE"]);
    expect(pump.take()).toEqual([]);
  });

  it.each(["envelope", "bare packet"])("loses it to the same session token, by %s", (how) => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    const again = w.clientAgain(ann.session);
    again.say(how === "envelope" ? to("lamp", packet("C.A")) : packet("C.A"));
    lamp.say(packet("C.A", 1));
    expect(again.take()).toMatchObject([{ sid: "C.A" }]);
    expect(ann.take()).toEqual([]);
    // The end of the old connection does not remove the binding.
    ann.hangUp();
    lamp.say(packet("C.A", 2));
    expect(again.take()).toMatchObject([{ seq: 2 }]);
  });

  it("loses it to a link that renews its session token, but not to one of another account", () => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    const renew = (user: string) => {
      const peer = w.connect();
      const auth = { type: "auth", api_token: `acct:${user}`, client_type: "client" };
      peer.say({ ...auth, renews: ann.session });
      return peer;
    };
    w.store.users.add("eve");
    expect(renew("eve").take()).toMatchObject([{ status: "authenticated" }]);
    const next = renew("ann");
    expect(next.take()).toMatchObject([{ status: "authenticated", renewed: true }]);
    next.say(to("lamp", packet("C.A")));
    lamp.say(packet("C.A", 1));
    expect(next.take()).toMatchObject([{ sid: "C.A" }]);
    expect(ann.take()).toEqual([]);
  });

  it("loses it with the connection", () => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    ann.hangUp();
    const other = w.client("ann");
    other.say(packet("C.A"));
    expect(other.codes()).toEqual(["UNKNOWN_SESSION"]);
    other.say(to("lamp", packet("C")));
    expect(other.take()).toEqual([]);
    expect(lamp.take()).toHaveLength(2);
  });

  it("has at most 1,024 at a time; the least recently used is dropped", () => {
    const { w, ann, lamp } = world();
    for (let i = 0; i <= 1024; i++) ann.say(to("lamp", packet(`C${i}`)));
    expect(w.hub.stats().bindings).toBe(1024);
    lamp.take();
    ann.say(packet("C0.A"));
    expect(ann.codes()).toEqual(["UNKNOWN_SESSION"]);
    ann.say(packet("C1.A"));
    expect(lamp.take()).toHaveLength(1);
  });

  it.each<[string, (ann: VirtualPeer, lamp: VirtualPeer) => void]>([
    ["a bare packet of the client", (ann) => ann.say(packet("C0.A"))],
    ["an envelope of the client", (ann) => ann.say(to("lamp", packet("C0.A")))],
    ["a bare packet of the agent", (_ann, lamp) => lamp.say(packet("C0.A"))],
    ["an envelope of the agent", (_ann, lamp) => lamp.say(envelope(packet("C0.A")))],
  ])("counts %s as a use", (_what, use) => {
    const { ann, lamp } = world();
    for (let i = 0; i < 1024; i++) ann.say(to("lamp", packet(`C${i}`)));
    use(ann, lamp);
    ann.say(to("lamp", packet("C1024")));
    ann.take();
    lamp.say(packet("C0.A"));
    lamp.say(packet("C1.A"));
    expect(ann.take()).toMatchObject([{ sid: "C0.A" }]);
  });

  it("does not count what another agent sends on its sid as a use", () => {
    const { ann, lamp, pump } = world();
    for (let i = 0; i < 1024; i++) ann.say(to("lamp", packet(`C${i}`)));
    pump.say(packet("C0.A"));
    ann.say(to("lamp", packet("C1024")));
    ann.take();
    lamp.say(packet("C0.A"));
    expect(ann.take()).toEqual([]);
  });
});

describe("an agent's packet", () => {
  it("goes to the client its first part is bound to, bare or enveloped, unchanged", () => {
    const { ann, bob, lamp } = world();
    ann.say(to("lamp", packet("C")));
    const bare = lamp.say({ ...packet("C.A"), more: 1 });
    const enveloped = lamp.say(envelope(packet("C.A"), { agent_id: "lamp", request_id: "r" }));
    const [first, second] = ann.takeFrames();
    expect(first).toBe(bare);
    expect(second).toBe(enveloped);
    expect(bob.take()).toEqual([]);
  });

  it("without a binding is dropped: UNKNOWN_SESSION with its full sid", () => {
    const { w, ann, lamp } = world();
    lamp.say(packet("C.A"));
    lamp.say(envelope(packet("D.A"), { request_id: "r" }));
    expect(lamp.take()).toMatchObject([
      { code: "UNKNOWN_SESSION", sid: "C.A" },
      { code: "UNKNOWN_SESSION", sid: "D.A", request_id: "r" },
    ]);
    expect(ann.take()).toEqual([]);
    expect(w.dropped()).toEqual({ UNKNOWN_SESSION: 2 });
  });

  it("on a sid bound to another agent is dropped", () => {
    const { ann, pump } = world();
    ann.say(to("lamp", packet("C")));
    pump.say(packet("C.A"));
    pump.say(envelope(packet("C.A")));
    expect(pump.codes()).toEqual(["UNKNOWN_SESSION", "UNKNOWN_SESSION"]);
    expect(ann.take()).toEqual([]);
  });

  it("is routed by its sid alone, whatever its request_id", () => {
    const { ann, lamp } = world();
    ann.say(to("lamp", "no packet", { request_id: "r" }));
    lamp.take();
    lamp.say(envelope(packet("C.A"), { request_id: "r" }));
    expect(lamp.codes()).toEqual(["UNKNOWN_SESSION"]);
    expect(ann.take()).toEqual([]);
  });
});

describe("an agent's envelope", () => {
  it("gets agent_id set if it has none, and no other byte changes", () => {
    const { ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    const payload = JSON.stringify(packet("C.A")).replaceAll('"', '\\"');
    lamp.say(` { "type":"relay",  "payload":"${payload}" }`);
    expect(ann.takeFrames()).toEqual([
      new TextEncoder().encode(` {"agent_id":"lamp", "type":"relay",  "payload":"${payload}" }`),
    ]);
  });

  it("with the agent_id of another is BAD_MESSAGE", () => {
    const { ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    lamp.take();
    lamp.say(envelope(packet("C.A"), { agent_id: "pump", request_id: "r" }));
    const error = "agent_id must be the agent's own";
    expect(lamp.take()).toMatchObject([
      { code: "BAD_MESSAGE", error, sid: "C.A", request_id: "r" },
    ]);
    expect(ann.take()).toEqual([]);
  });

  it("that no longer fits once agent_id is set is TOO_LARGE", () => {
    const { ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    lamp.take();
    const empty = JSON.stringify(envelope(packet("C.A", 1, ""), { agent_id: "lamp" })).length;
    lamp.say(envelope(packet("C.A", 1, "A".repeat(65_537 - empty))));
    expect(lamp.take()).toMatchObject([{ code: "TOO_LARGE", sid: "C.A" }]);
    expect(ann.take()).toEqual([]);
    lamp.say(envelope(packet("C.A", 1, "A".repeat(65_536 - empty))));
    expect([lamp.take(), ann.take()]).toMatchObject([[], [{ agent_id: "lamp" }]]);
  });
});

describe("an agent's envelope without agent_id that fits only if counted in characters", () => {
  it("is TOO_LARGE: the limit is in bytes, and a longer message would end the client's link", () => {
    const { ann, lamp } = world();
    ann.say(to("lamp", packet("C")));
    lamp.take();
    const empty = JSON.stringify(envelope(packet("C.A"), { extra: "" })).length;
    lamp.say(envelope(packet("C.A"), { extra: "é".repeat((65_536 - empty) / 2) }));
    expect(lamp.take()).toMatchObject([{ code: "TOO_LARGE", sid: "C.A" }]);
    expect(ann.take()).toEqual([]);
  });
});

describe("a request_id", () => {
  it("of a deleted agent leads no agent of its name in another account to the client", () => {
    const { w, ann, bob } = world();
    ann.say(to("lamp", "question", { request_id: "r" }));
    w.hub.forgetAgent("lamp", "REVOKED", w.now);
    ann.take();
    w.store.owners.set("lamp", "bob");
    const lamp = w.agent("lamp");
    bob.take();
    bob.say(to("lamp", "question", { request_id: "r" }));
    expect([lamp.take().length, bob.take()]).toEqual([1, []]);
    lamp.say(envelope("answer", { request_id: "r" }));
    expect([ann.take(), bob.take().length]).toEqual([[], 1]);
  });

  it("routes the answer to the connection that asked, for 60 s", () => {
    const { w, ann, lamp } = world();
    const other = w.client("ann");
    ann.say(to("lamp", "question", { request_id: "r" }));
    lamp.take();
    w.advance(59_900);
    lamp.say(envelope("answer", { request_id: "r" }));
    expect(ann.take()).toMatchObject([{ payload: "answer", agent_id: "lamp" }]);
    w.advance(200);
    lamp.say(envelope("late", { request_id: "r" }));
    expect(lamp.take()).toMatchObject([{ code: "UNKNOWN_SESSION", request_id: "r" }]);
    expect(other.take()).toEqual([]);
    expect(w.hub.stats().requestIds).toBe(0);
  });

  it("expires after 60 s even between two ticks", () => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", "question", { request_id: "r" }));
    lamp.take();
    w.now += 60_000;
    lamp.say(envelope("late", { request_id: "r" }));
    expect(lamp.codes()).toEqual(["UNKNOWN_SESSION"]);
  });

  it("belongs to one agent: an answer from another under it is dropped", () => {
    const { ann, pump } = world();
    ann.say(to("lamp", "question", { request_id: "r" }));
    pump.say(envelope("answer", { request_id: "r" }));
    expect(pump.codes()).toEqual(["UNKNOWN_SESSION"]);
    expect(ann.take()).toEqual([]);
  });

  it("that is live on another connection is refused with REQUEST_ID_IN_USE; after 60 s it is free", () => {
    const { w, ann, lamp, pump } = world();
    const other = w.client("ann");
    ann.say(to("lamp", "question", { request_id: "r" }));
    other.say(to("lamp", "question", { request_id: "r" }));
    expect(other.take()).toMatchObject([{ code: "REQUEST_ID_IN_USE", request_id: "r" }]);
    expect(lamp.take()).toHaveLength(1);
    other.say(to("pump", "question", { request_id: "r" }));
    expect(pump.take()).toHaveLength(1);
    w.advance(60_000);
    other.say(to("lamp", "question", { request_id: "r" }));
    expect(lamp.take()).toHaveLength(1);
  });

  it("is taken over by the same session token", () => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", "question", { request_id: "r" }));
    const again = w.clientAgain(ann.session);
    again.say(to("lamp", "question", { request_id: "r" }));
    ann.hangUp();
    lamp.say(envelope("answer", { request_id: "r" }));
    expect(again.take()).toMatchObject([{ payload: "answer" }]);
  });

  it("ends with its connection", () => {
    const { w, ann, lamp } = world();
    ann.say(to("lamp", "question", { request_id: "r" }));
    ann.hangUp();
    lamp.take();
    lamp.say(envelope("answer", { request_id: "r" }));
    expect(lamp.codes()).toEqual(["UNKNOWN_SESSION"]);
    expect(w.hub.stats().requestIds).toBe(0);
  });

  it("beside a packet is neither remembered nor refused, whatever it looks like", () => {
    const { w, ann, lamp } = world();
    const other = w.client("ann");
    ann.say(to("lamp", "question", { request_id: "r" }));
    other.say(to("lamp", packet("C"), { request_id: "r" }));
    other.say(to("lamp", packet("D"), { request_id: "r".repeat(65) }));
    other.say(to("lamp", packet("E"), { request_id: 7 }));
    expect(other.take()).toEqual([]);
    expect(lamp.take()).toHaveLength(4);
    expect(w.hub.stats().requestIds).toBe(1);
  });

  it("table is bounded per connection; the oldest is dropped", () => {
    const { w, ann, lamp } = world();
    for (let i = 0; i <= 4096; i++) {
      if (i % 1000 === 0) w.advance(1_000);
      ann.say(to("lamp", "x", { request_id: `r${i}` }));
    }
    expect(w.hub.stats().requestIds).toBe(4096);
    lamp.take();
    lamp.say(envelope("answer", { request_id: "r0" }));
    expect(lamp.codes()).toEqual(["UNKNOWN_SESSION"]);
  });
});

describe("an error", () => {
  it("is ASCII, whatever the sid", () => {
    const { ann } = world();
    ann.say(packet("Ж.A"));
    expect(ann.frames.at(-1)).toContain('"sid":"\\u0416.A"');
    expect(ann.codes()).toEqual(["UNKNOWN_SESSION"]);
  });

  it("contains its full sid, however long", () => {
    const { ann } = world();
    const sid = `C.${"A".repeat(10_000)}`;
    ann.say(packet(sid));
    expect(ann.take()).toMatchObject([{ sid }]);
  });

  it("omits what would make it longer than a message may be", () => {
    const { ann } = world();
    ann.say(packet("A".repeat(65_450)));
    expect(ann.take()).toEqual([
      { type: "error", code: "UNKNOWN_SESSION", error: expect.any(String) },
    ]);
  });
});
