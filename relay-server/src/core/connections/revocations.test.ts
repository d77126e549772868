/** Which look-ups and connections a revocation ends. */
import { describe, expect, it } from "vitest";
import { concerns, type Revocation, Revocations } from "./revocations.ts";

const session = (sessionHash: string): Revocation => ({ kind: "session", sessionHash });

const isOf =
  (sessionHash: string) =>
  (each: Revocation): boolean =>
    each.kind === "session" && each.sessionHash === sessionHash;

describe("a look-up", () => {
  it("is concerned by what was revoked after it began, and not before", () => {
    const revocations = new Revocations();
    expect(revocations.since(revocations.mark(), () => true)).toBe(false);
    revocations.add(session("before"));
    const mark = revocations.mark();
    expect(revocations.since(mark, () => true)).toBe(false);
    for (const each of ["first", "second"]) revocations.add(session(each));
    expect(revocations.since(mark, isOf("before"))).toBe(false);
    expect(revocations.since(mark, isOf("first"))).toBe(true);
    expect(revocations.since(mark, isOf("second"))).toBe(true);
    expect(revocations.since(revocations.mark(), isOf("second"))).toBe(false);
  });

  it("is concerned, too, when more was revoked meanwhile than is remembered", () => {
    const revocations = new Revocations();
    for (let n = 0; n < 5; n++) revocations.add(session("before"));
    const mark = revocations.mark();
    for (let n = 0; n < 1000; n++) revocations.add(session("other"));
    expect(revocations.since(mark, isOf("mine"))).toBe(false);
    revocations.add(session("other"));
    expect(revocations.since(mark, isOf("mine"))).toBe(true);
    expect(revocations.since(mark + 1, isOf("mine"))).toBe(false);
  });
});

describe("a revocation", () => {
  const client = { role: "client", userId: "ann", sessionHash: "#ann" } as const;
  const agent = { role: "agent", userId: "ann", sessionHash: "#lamp", agentId: "lamp" } as const;
  const withKey = { ...client, key: { id: "hall" } };

  it.each<[string, Revocation, boolean[]]>([
    ["an agent", { kind: "agent", agentId: "lamp" }, [false, true, false]],
    ["another agent", { kind: "agent", agentId: "pump" }, [false, false, false]],
    ["an account's clients", { kind: "clients", userId: "ann" }, [true, false, false]],
    ["another account's clients", { kind: "clients", userId: "bob" }, [false, false, false]],
    ["an account", { kind: "user", userId: "ann" }, [true, true, true]],
    ["another account", { kind: "user", userId: "bob" }, [false, false, false]],
    ["a session", session("#ann"), [true, false, true]],
    ["another session", session("#bob"), [false, false, false]],
    ["an access key", { kind: "key", keyId: "hall" }, [false, false, true]],
    ["another access key", { kind: "key", keyId: "cellar" }, [false, false, false]],
  ])(
    "of %s concerns these and no others (client, agent, client with a key)",
    (_, revocation, ends) => {
      expect([client, agent, withKey].map((who) => concerns(revocation, who))).toEqual(ends);
    },
  );
});
