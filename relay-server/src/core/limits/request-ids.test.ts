/** Whose answer it is; for the limits, see ../connections/bindings.test.ts. */
import { describe, expect, it } from "vitest";
import { RequestIds } from "./request-ids.ts";

/** Connections of one user, by session token and any that it renews. */
const world = (...tokens: [string, string?][]) => {
  const user = { requestIds: 0 };
  const requesters = tokens.map(([sessionHash, renews]) => ({
    sessionHash,
    renews,
    requests: new Set<string>(),
    user,
  }));
  const ids = new RequestIds<(typeof requesters)[number]>((requester) => requester.user);
  const clientFor = (agentId: string, requestId: string, now: number) =>
    ids.clientFor(agentId, requestId, user, now);
  return { ids, user, requesters, clientFor };
};

describe("a request id", () => {
  it("belongs to the connection that asked, for 60 s", () => {
    const { ids, requesters, clientFor } = world(["#ann"], ["#bob"]);
    const [ann, bob] = requesters as [(typeof requesters)[0], (typeof requesters)[0]];
    expect(ids.remember("lamp", "1", ann, 1_000)).toBe(true);
    expect(clientFor("lamp", "1", 60_999)).toBe(ann);
    expect(clientFor("pump", "1", 1_000)).toBeNull();
    expect(clientFor("lamp", "2", 1_000)).toBeNull();
    expect(ids.remember("lamp", "1", bob, 60_999)).toBe(false);
    expect(clientFor("lamp", "1", 61_000)).toBeNull();
    expect(ids.remember("lamp", "1", bob, 61_000)).toBe(true);
    expect(clientFor("lamp", "1", 61_000)).toBe(bob);
    expect([ann.requests.size, ann.user.requestIds, bob.requests.size]).toEqual([0, 1, 1]);
  });

  it("is taken over by a connection of the same session token, or one that renews it", () => {
    const { ids, user, requesters, clientFor } = world(["#a"], ["#a"], ["#b", "#a"]);
    for (const each of requesters) {
      expect(ids.remember("lamp", "1", each, 0)).toBe(true);
      expect(clientFor("lamp", "1", 0)).toBe(each);
    }
    expect(ids.remember("lamp", "1", requesters[0] as (typeof requesters)[0], 0)).toBe(false);
    expect(requesters.map(({ requests }) => requests.size)).toEqual([0, 0, 1]);
    expect(user.requestIds).toBe(1);
  });

  it("is forgotten after its time, and with its connection", () => {
    const { ids, user, requesters } = world(["#ann"], ["#bob"]);
    const [ann, bob] = requesters as [(typeof requesters)[0], (typeof requesters)[0]];
    ids.remember("lamp", "1", ann, 0);
    ids.remember("lamp", "2", bob, 500);
    ids.expire(59_999);
    expect(ids.size).toBe(2);
    ids.expire(60_000);
    expect([ids.size, user.requestIds, ann.requests.size]).toEqual([1, 1, 0]);
    ids.drop(bob);
    expect([ids.size, user.requestIds, bob.requests.size]).toEqual([0, 0, 0]);
  });
});
