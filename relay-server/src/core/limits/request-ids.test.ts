/** Whose answer it is; for the limits, see ../connections/bindings.test.ts. */
import { describe, expect, it } from "vitest";
import { RequestIds } from "./request-ids.ts";

const requester = (sessionHash: string, renews?: string) => ({
  sessionHash,
  renews,
  requests: new Set<string>(),
  user: { requestIds: 0 },
});

describe("a request id", () => {
  it("belongs to the connection that asked, for 60 s", () => {
    const ids = new RequestIds<ReturnType<typeof requester>>();
    const [ann, bob] = [requester("#ann"), requester("#bob")];
    expect(ids.remember("lamp", "1", ann, 1_000)).toBe(true);
    expect(ids.clientFor("lamp", "1", 60_999)).toBe(ann);
    expect(ids.clientFor("pump", "1", 1_000)).toBeNull();
    expect(ids.clientFor("lamp", "2", 1_000)).toBeNull();
    expect(ids.remember("lamp", "1", bob, 60_999)).toBe(false);
    expect(ids.clientFor("lamp", "1", 61_000)).toBeNull();
    expect(ids.remember("lamp", "1", bob, 61_000)).toBe(true);
    expect(ids.clientFor("lamp", "1", 61_000)).toBe(bob);
    expect([ann.requests.size, ann.user.requestIds, bob.requests.size]).toEqual([0, 0, 1]);
  });

  it("is taken over by a connection of the same session token, or one that renews it", () => {
    const ids = new RequestIds<ReturnType<typeof requester>>();
    const [first, same, renewing] = [requester("#a"), requester("#a"), requester("#b", "#a")];
    for (const each of [first, same, renewing]) {
      expect(ids.remember("lamp", "1", each, 0)).toBe(true);
      expect(ids.clientFor("lamp", "1", 0)).toBe(each);
    }
    expect(ids.remember("lamp", "1", first, 0)).toBe(false);
    expect([first, same, renewing].map(({ user }) => user.requestIds)).toEqual([0, 0, 1]);
  });

  it("is forgotten after its time, and with its connection", () => {
    const ids = new RequestIds<ReturnType<typeof requester>>();
    const [ann, bob] = [requester("#ann"), requester("#bob")];
    ids.remember("lamp", "1", ann, 0);
    ids.remember("lamp", "2", bob, 500);
    ids.expire(59_999);
    expect(ids.size).toBe(2);
    ids.expire(60_000);
    expect([ids.size, ann.user.requestIds, bob.user.requestIds]).toEqual([1, 0, 1]);
    ids.drop(bob);
    expect([ids.size, bob.user.requestIds, bob.requests.size]).toEqual([0, 0, 0]);
  });
});
