/** What a session token has used, across its connections and nodes. */
import { describe, expect, it } from "vitest";
import { KEEP_SESSION_MS, SAVE_REQUESTS_MS } from "./limits.ts";
import { RequestCounts } from "./request-counts.ts";

const MAX = 10;
const EXPIRES_AT = 1_000_000;

const made = (isCluster = false) => {
  const saved: unknown[] = [];
  const asked: string[] = [];
  const counts = new RequestCounts(MAX, {
    saveRequestsUsed: (...what) => saved.push(what),
    ...(isCluster ? { reserveRequests: (hash: string) => asked.push(hash) } : {}),
  });
  return { counts, saved, asked };
};

const times = <T>(count: number, work: () => T): T[] => Array.from({ length: count }, work);

describe("the requests of a session token", () => {
  it("are counted over all of its connections, up to the limit", () => {
    const { counts } = made();
    const session = counts.join("#a", 3, EXPIRES_AT);
    expect(counts.join("#a", 2, EXPIRES_AT)).toBe(session);
    expect(times(7, () => counts.count(session, 0))).toEqual(Array(7).fill("counted"));
    expect(counts.count(session, 0)).toBe("used up");
    expect([counts.usedOf("#a", 0), counts.usedOf("#a", 12), counts.usedOf("#b", 4)]).toEqual([
      MAX,
      12,
      4,
    ]);
    expect([counts.isUsedUp(MAX - 1), counts.isUsedUp(MAX)]).toEqual([false, true]);
    expect(counts.join("#b", 0, EXPIRES_AT)).toMatchObject({ hash: "#b", used: 0 });
  });

  it("are no fewer than the store knows, when another connection comes", () => {
    const { counts } = made();
    const session = counts.join("#a", 0, EXPIRES_AT);
    counts.join("#a", MAX - 1, EXPIRES_AT);
    expect(times(2, () => counts.count(session, 0))).toEqual(["counted", "used up"]);
  });

  it("are saved every few seconds if there were any, and when the last connection leaves", () => {
    const { counts, saved } = made();
    const session = counts.join("#a", 3, EXPIRES_AT);
    counts.join("#a", 3, EXPIRES_AT);
    counts.tick(0);
    times(2, () => counts.count(session, 0));
    counts.tick(SAVE_REQUESTS_MS - 1);
    expect(saved).toEqual([]);
    counts.tick(SAVE_REQUESTS_MS);
    expect(saved.splice(0)).toEqual([["#a", 5, 2]]);
    counts.tick(2 * SAVE_REQUESTS_MS);
    expect(saved).toEqual([]);
    counts.count(session, 0);
    counts.leave(session, 0);
    expect(saved).toEqual([]);
    counts.leave(session, 0);
    expect(saved).toEqual([["#a", 6, 1]]);
  });

  it("are saved at once when none is left, so that REST refuses the token too", () => {
    const { counts, saved } = made();
    const session = counts.join("#a", 0, EXPIRES_AT);
    counts.join("#a", 0, EXPIRES_AT);
    times(MAX - 1, () => counts.count(session, 0));
    expect(saved).toEqual([]);
    counts.count(session, 0);
    expect(saved).toEqual([["#a", MAX, MAX]]);
    expect(counts.count(session, 0)).toBe("used up");
    counts.tick(SAVE_REQUESTS_MS);
    expect(saved).toHaveLength(1);
  });

  it("are remembered for a minute after the last connection, unless another one comes", () => {
    const { counts } = made();
    const [gone, kept] = [counts.join("#a", 0, EXPIRES_AT), counts.join("#b", 0, EXPIRES_AT)];
    for (const session of [gone, kept]) {
      times(2, () => counts.count(session, 0));
      counts.leave(session, 1_000);
    }
    counts.join("#b", 0, EXPIRES_AT);
    counts.tick(1_000 + KEEP_SESSION_MS - 1);
    expect([counts.size, counts.usedOf("#a", 0)]).toEqual([2, 2]);
    counts.tick(1_000 + KEEP_SESSION_MS);
    expect([counts.size, counts.usedOf("#a", 0), counts.usedOf("#b", 0)]).toEqual([1, 0, 2]);
    counts.leave(kept, 2 * KEEP_SESSION_MS);
    counts.tick(3 * KEEP_SESSION_MS - 1);
    expect(counts.size).toBe(1);
    counts.tick(3 * KEEP_SESSION_MS);
    expect(counts.size).toBe(0);
    counts.join("#b", 0, EXPIRES_AT);
    counts.tick(4 * KEEP_SESSION_MS);
    expect(counts.size).toBe(1);
  });
});

describe("on a node of a cluster", () => {
  it("requests are reserved once for all that wait, used, and the rest given back", () => {
    const { counts, saved, asked } = made(true);
    const session = counts.join("#a", 0, EXPIRES_AT);
    expect(times(2, () => counts.count(session, 0))).toEqual(["later", "later"]);
    expect(asked).toEqual(["#a"]);
    expect(counts.granted("#a", 5, 0)).toBe(true);
    expect(times(2, () => counts.count(session, 0))).toEqual(["counted", "counted"]);
    counts.leave(session, 0);
    expect(saved).toEqual([["#a", 0, -3]]);
  });

  it("a reservation that comes when its session is forgotten goes back to the store", () => {
    const { counts, saved } = made(true);
    expect(counts.granted("#a", 5, 0)).toBe(false);
    expect(saved).toEqual([["#a", 0, -5]]);
    expect(counts.granted("#a", null, 0)).toBe(false);
    expect(saved).toHaveLength(1);
  });

  it("what is not used for a second is given back", () => {
    const { counts, saved } = made(true);
    const session = counts.join("#a", 0, EXPIRES_AT);
    counts.count(session, 0);
    counts.granted("#a", 5, 0);
    counts.tick(999);
    expect(saved).toEqual([]);
    counts.tick(1_000);
    expect(saved).toEqual([["#a", 0, -5]]);
  });
});
