/** What clients with an access key reach, by routing, presence and time. */
import { describe, expect, it } from "vitest";
import type { LocalClient } from "../connections/connection.ts";
import { envelope, type Fields, packet, World } from "../testing/test-hub.ts";
import { Views } from "./access-key-views.ts";

const HALL = { site: "hall" };
const CELLAR = { site: "cellar" };

/** Ann with a lamp in the hall and a pump in the cellar, both online, and a key for the hall. */
const world = (expiresInMs: number | null = null) => {
  const w = new World();
  w.user("ann", "lamp", "pump", "away");
  w.user("bob", "bobs");
  w.store.labels.set("lamp", HALL).set("pump", CELLAR).set("bobs", HALL);
  const expiresAtMs = expiresInMs === null ? null : w.now + expiresInMs;
  w.store.keys.set("hall", { userId: "ann", site: "hall", expiresAtMs });
  w.store.keys.set("all", { userId: "ann", site: null, expiresAtMs: null });
  const [lamp, pump] = [w.agent("lamp"), w.agent("pump")];
  const relabel = (agentId: string, labels: Readonly<Record<string, string>>) => {
    w.store.labels.set(agentId, labels);
    w.hub.relabel(agentId);
    w.settle();
  };
  return { w, lamp, pump, relabel };
};

const to = (agentId: string, payload: Fields | string, more: Fields = {}): Fields =>
  envelope(payload, { agent_id: agentId, ...more });

describe("a client with an access key", () => {
  it("reaches the agents that its selector matches, and no others", () => {
    const { w, lamp, pump } = world();
    const ci = w.clientWithKey("hall");
    ci.say(to("lamp", packet("C")));
    expect(lamp.take()).toHaveLength(1);
    lamp.say(packet("C.A"));
    expect(ci.take()).toMatchObject([{ sid: "C.A" }]);
    for (const hidden of ["pump", "away", "bobs", "nobody"]) ci.say(to(hidden, packet("D")));
    expect(ci.codes()).toEqual(Array(4).fill("AGENT_NOT_FOUND"));
    expect(pump.take()).toEqual([]);
  });

  it("reaches every agent of its account without a selector", () => {
    const { w, pump } = world();
    const ci = w.clientWithKey("all");
    ci.say(to("pump", packet("C")));
    expect(pump.take()).toHaveLength(1);
    w.user("ann", "new");
    ci.say(to("new", packet("D")));
    expect(ci.codes()).toEqual(["AGENT_OFFLINE"]);
  });

  it("learns of no other agent's presence, neither at first nor later", () => {
    const { w, pump, lamp } = world();
    const ci = w.clientWithKey("hall", true);
    w.advance(1000);
    expect(ci.take()).toMatchObject([{ type: "agent_status", agent_id: "lamp", online: true }]);
    pump.hangUp();
    lamp.hangUp();
    w.advance(1000);
    expect(ci.take()).toMatchObject([{ agent_id: "lamp", online: false }]);
  });
});

describe("labels that change", () => {
  it("hide an agent in both directions, on bindings that are open, and count what is dropped", () => {
    const { w, lamp, relabel } = world();
    const ci = w.clientWithKey("hall");
    ci.say(to("lamp", packet("C")));
    lamp.take();
    relabel("lamp", CELLAR);
    expect(ci.take()).toMatchObject([{ agent_id: "lamp", online: false }]);
    const dropped = () => w.hub.stats().counters.dropped.get("AGENT_NOT_FOUND") ?? 0;
    lamp.say(packet("C.A"));
    expect([ci.take(), lamp.take(), dropped()]).toEqual([[], [], 1]);
    ci.say(packet("C.A"));
    ci.say(to("lamp", packet("E")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND", "AGENT_NOT_FOUND"]);
    expect(lamp.take()).toEqual([]);
    relabel("lamp", HALL);
    expect(ci.take()).toMatchObject([{ agent_id: "lamp", online: true }]);
    lamp.say(packet("C.A"));
    expect(ci.take()).toMatchObject([{ sid: "C.A" }]);
  });

  it("during a login count, too", () => {
    const { w, relabel, lamp } = world();
    w.slowStore = true;
    const ci = w.connect();
    ci.say({ type: "auth", client_type: "client", api_token: "key:hall" });
    w.slowStore = false;
    // The store's answer was made before this change, and arrives after it.
    relabel("lamp", CELLAR);
    w.settle();
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
    expect(lamp.take()).toEqual([]);
  });

  // A login that does not know of all changes might show an agent that was hidden meanwhile.
  it.each([
    [1000, "key:hall", "authenticated"],
    [1001, "key:hall", "failed"],
    [1001, "acct:ann", "authenticated"],
  ])("%i times while %s logs in: it is %s", (times, api_token, status) => {
    const { w } = world();
    w.slowStore = true;
    const ci = w.connect();
    ci.say({ type: "auth", client_type: "client", api_token });
    for (let n = 0; n < times; n++) w.hub.relabel("pump");
    w.slowStore = false;
    w.settle();
    const refusal = { code: "UNAVAILABLE", error: "Too much has changed meanwhile" };
    expect(ci.take()).toMatchObject([{ status, ...(status === "failed" ? refusal : {}) }]);
  });

  it("are taken from the latest answer, if they change while they are looked up", () => {
    const { w, relabel } = world();
    const ci = w.clientWithKey("hall");
    w.slowStore = true;
    relabel("pump", HALL);
    relabel("pump", CELLAR);
    w.slowStore = false;
    w.settle();
    ci.take();
    ci.say(to("pump", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
  });

  it("hide an agent while the store cannot tell, until it can", () => {
    const { w, lamp, relabel } = world();
    const ci = w.clientWithKey("hall");
    w.store.broken = true;
    relabel("lamp", HALL);
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
    w.store.broken = false;
    w.advance(2000);
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect(lamp.take()).toHaveLength(1);
  });

  it("hide an agent while the store takes more than two seconds, until it answers", () => {
    const { w, lamp, relabel } = world();
    const ci = w.clientWithKey("hall");
    w.slowStore = true;
    relabel("lamp", HALL);
    w.advance(2100);
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
    w.slowStore = false;
    w.settle();
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect(lamp.take()).toHaveLength(1);
  });

  it("of an agent that was deleted and made anew are the new one's", () => {
    const { w } = world();
    const ci = w.clientWithKey("hall");
    w.slowStore = true;
    w.hub.relabel("lamp");
    const late = w.lookUps.splice(0);
    w.hub.forgetAgent("lamp", "REVOKED", w.now);
    w.store.labels.set("lamp", CELLAR);
    w.hub.relabel("lamp");
    w.slowStore = false;
    for (const answer of late) answer();
    w.settle();
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
  });

  it("of a deleted agent show no new one of its name, even while the store is slow", () => {
    const { w } = world();
    const ci = w.clientWithKey("hall");
    w.hub.forgetAgent("lamp", "REVOKED", w.now);
    const lamp = w.agent("lamp");
    w.slowStore = true;
    w.hub.relabel("lamp");
    ci.take();
    ci.say(to("lamp", packet("C")));
    expect([ci.codes(), lamp.take()]).toEqual([["AGENT_NOT_FOUND"], []]);
  });

  it("of another account's agent show it to nobody", () => {
    const { w, relabel } = world();
    w.agent("bobs");
    const ci = w.clientWithKey("hall");
    relabel("bobs", HALL);
    expect(ci.take()).toEqual([]);
    ci.say(to("bobs", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
  });

  it("are told to each client of a key, until it leaves", () => {
    const { w, pump, relabel } = world();
    const [one, two] = [w.clientWithKey("hall"), w.clientWithKey("hall")];
    const told = () => [one, two].map((ci) => ci.take().map(({ online }) => online));
    relabel("pump", HALL);
    expect(told()).toEqual([[true], [true]]);
    for (const ci of [one, two]) ci.say(to("pump", packet(ci === one ? "C" : "D")));
    expect([one.take(), two.take(), pump.take().length]).toEqual([[], [], 2]);
    one.hangUp();
    relabel("pump", CELLAR);
    expect(told()).toEqual([[], [false]]);
    two.hangUp();
    relabel("pump", HALL);
    const three = w.clientWithKey("hall");
    three.say(to("pump", packet("C")));
    expect(three.take()).toEqual([]);
  });

  it("are looked up only while somebody has such a key, and one look-up at a time", () => {
    const { w, relabel } = world();
    w.slowStore = true;
    relabel("pump", HALL);
    expect(w.lookUps).toHaveLength(0);
    w.slowStore = false;
    const ci = w.clientWithKey("hall");
    w.slowStore = true;
    for (const labels of [CELLAR, HALL, CELLAR]) relabel("pump", labels);
    expect(w.lookUps).toHaveLength(1);
    w.answer();
    expect(w.lookUps).toHaveLength(1);
    w.answer();
    expect(w.lookUps).toHaveLength(0);
    ci.hangUp();
    w.settle();
    relabel("pump", HALL);
    expect(w.lookUps).toHaveLength(0);
  });

  it("that changed during a login are looked up after it, and no others", () => {
    const { w, relabel } = world();
    for (const labels of [HALL, CELLAR]) relabel("pump", labels);
    w.slowStore = true;
    const [during, before] = [w.connect(), w.connect()];
    const login = { type: "auth", client_type: "client", api_token: "key:hall" };
    during.say(login);
    relabel("lamp", HALL);
    before.say(login);
    const [first, second] = w.lookUps.splice(0) as [() => void, () => void];
    second();
    expect(w.lookUps).toHaveLength(0);
    first();
    expect(w.lookUps).toHaveLength(1);
  });

  it.each<[string, (w: World) => void]>([
    ["succeeds", () => undefined],
    ["concerns an agent that is deleted", (w) => w.hub.forgetAgent("lamp", "REVOKED", w.now)],
  ])("are looked up once a second after a failure, until a look-up %s", (_, end) => {
    const { w, relabel } = world();
    w.clientWithKey("hall");
    w.store.broken = true;
    relabel("lamp", HALL);
    const count = (ms: number): number => {
      w.slowStore = true;
      let asked = 0;
      for (let passed = 0; passed < ms; passed += 100) {
        w.advance(100);
        asked += w.lookUps.length;
        w.answer();
      }
      w.slowStore = false;
      return asked;
    };
    expect(count(5_000)).toBe(5);
    end(w);
    w.store.broken = false;
    w.advance(1_000);
    expect(count(5_000)).toBe(0);
  });

  it("do not hide an agent while their look-up takes less than a second", () => {
    const { w, lamp, relabel } = world();
    const ci = w.clientWithKey("hall");
    w.advance(1_000);
    w.slowStore = true;
    relabel("lamp", HALL);
    w.advance(900);
    ci.say(to("lamp", packet("C")));
    expect([ci.take(), lamp.take().length]).toEqual([[], 1]);
  });

  it("of a new agent count, and a deleted one is gone", () => {
    const { w, relabel } = world();
    const ci = w.clientWithKey("hall");
    w.user("ann", "new");
    relabel("new", HALL);
    ci.say(to("new", packet("C")));
    expect(ci.codes()).toEqual(["AGENT_OFFLINE"]);
    w.store.owners.delete("new");
    w.hub.forgetAgent("new", "REVOKED", w.now);
    w.settle();
    ci.take();
    ci.say(to("new", packet("D")));
    expect(ci.codes()).toEqual(["AGENT_NOT_FOUND"]);
  });
});

describe("the view of a key", () => {
  const hall = () => {
    const asked: string[] = [];
    const views = new Views((agentId) => asked.push(agentId));
    const matches = (_: string, { site }: { readonly site?: string }) => site === "hall";
    const view = views.open({ id: "hall", matches, agents: ["lamp"] }, "ann");
    views.add({ view } as LocalClient);
    return { views, view, asked: () => asked.splice(0) };
  };
  const ANNS = { userId: "ann", labels: HALL };

  it("never has an agent of another account, nor one that there is not", () => {
    const { views, view } = hall();
    expect(views.found("bobs", { userId: "bob", labels: HALL })).toEqual([]);
    expect(views.found("nobody", null)).toEqual([]);
    expect(views.found("pump", ANNS)).toEqual([{ view, agentId: "pump", isSeen: true }]);
    expect(views.found("lamp", null)).toEqual([{ view, agentId: "lamp", isSeen: false }]);
  });

  it("does not get back an agent that is deleted while its labels are looked up", () => {
    const { views, view, asked } = hall();
    views.changed("lamp");
    expect(views.forget("lamp")).toEqual([{ view, agentId: "lamp", isSeen: false }]);
    expect([views.found("lamp", ANNS), asked()]).toEqual([[], ["lamp", "lamp"]]);
    expect(views.found("lamp", null)).toEqual([]);
  });

  it("asks each second for an agent that could not be looked up, until it is deleted", () => {
    const { views, view, asked } = hall();
    views.changed("lamp");
    expect(views.lost("lamp")).toEqual([{ view, agentId: "lamp", isSeen: false }]);
    for (const now of [1_000, 2_000]) {
      asked();
      views.tick(now - 1);
      expect(asked()).toEqual([]);
      views.tick(now);
      expect(asked()).toEqual(["lamp"]);
      views.lost("lamp");
    }
    views.forget("lamp");
    views.tick(3_000);
    expect(asked()).toEqual([]);
  });
});

describe("an access key that ends", () => {
  it("by itself ends its links within two seconds, and no others", () => {
    const { w } = world(60_000);
    const [ci, other, ann] = [w.clientWithKey("hall"), w.clientWithKey("all"), w.client("ann")];
    w.advance(59_000);
    expect(ci.closed).toBeNull();
    w.advance(2_900);
    expect(ci.codes()).toContain("SESSION_EXPIRED");
    expect([ci.closed === null, other.closed, ann.closed]).toEqual([false, null, null]);
  });

  it("by itself ends no link that has left, and those that stay once", () => {
    const { w } = world(60_000);
    const [gone, ci] = [w.clientWithKey("hall"), w.clientWithKey("hall")];
    gone.hangUp();
    w.advance(70_000);
    expect(gone.take()).toEqual([]);
    expect(ci.codes()).toEqual(["SESSION_EXPIRED"]);
  });

  it("when it is removed, ends its links at once", () => {
    const { w } = world();
    const [ci, other, ann] = [w.clientWithKey("hall"), w.clientWithKey("all"), w.client("ann")];
    w.hub.endKey("hall", "REVOKED", w.now);
    expect(ci.codes()).toContain("REVOKED");
    expect([ci.closed === null, other.closed, ann.closed]).toEqual([false, null, null]);
  });

  it("outlives the account token, and not its user", () => {
    const { w } = world();
    const [ci, ann] = [w.clientWithKey("hall"), w.client("ann")];
    w.hub.endClients("ann", "REVOKED", w.now);
    expect([ann.closed === null, ci.closed]).toEqual([false, null]);
    w.hub.endUser("ann", "REVOKED", w.now);
    expect(ci.closed === null).toBe(false);
  });

  it("while its login is looked up, keeps it out", () => {
    const { w } = world();
    w.slowStore = true;
    const ci = w.connect();
    ci.say({ type: "auth", client_type: "client", api_token: "key:hall" });
    w.hub.endKey("hall", "REVOKED", w.now);
    w.slowStore = false;
    w.settle();
    expect(ci.take()).toMatchObject([{ status: "failed", code: "INVALID_TOKEN" }]);
  });
});
