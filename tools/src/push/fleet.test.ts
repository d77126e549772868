import { Failure } from "@blindrelay/protocol/command-line";
import { describe, expect, it } from "vitest";
import { groupsOf, pushFleet } from "./fleet.ts";
import { TakesNone } from "./push-one.ts";

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `a${i}`);

describe("groups", () => {
  it.each([
    [100, 0.05, 20, 5],
    [7, 0.05, 7, 1],
    [10, 1, 1, 10],
    [10, 0.25, 4, 3],
    [100, 0.07, 15, 7],
    [0, 0.05, 0, 0],
  ])("of %i agents in shares of %d are %i, the first with %i", (count, share, groups, first) => {
    const made = groupsOf(ids(count), share);
    expect([made.length, made[0]?.length ?? 0, made.flat()]).toEqual([groups, first, ids(count)]);
  });
});

describe("a fleet", () => {
  it("is pushed to group after group, a group at once", async () => {
    const log: string[] = [];
    const push = async (id: string) => {
      log.push(`+${id}`);
      await Promise.resolve();
      log.push(`-${id}`);
      return { unchanged: id === "a3" };
    };
    const report = await pushFleet(groupsOf(ids(4), 0.5), push, () => undefined);
    expect(report).toEqual({
      kept: ["a0", "a1", "a2"],
      unchanged: ["a3"],
      failed: [],
      skipped: [],
      untouched: [],
    });
    expect(log).toEqual(["+a0", "+a1", "-a0", "-a1", "+a2", "+a3", "-a2", "-a3"]);
  });

  it("starts nothing new after the first failure; pushes in progress are completed", async () => {
    const push = async (id: string) => {
      if (id === "a1") throw new Failure("expectation", "it went back");
      return { unchanged: false };
    };
    const report = await pushFleet(groupsOf(ids(9), 0.3), push, () => undefined);
    expect(report).toEqual({
      kept: ["a0", "a2"],
      unchanged: [],
      failed: [{ agent_id: "a1", reason: "it went back" }],
      skipped: [],
      untouched: ["a3", "a4", "a5", "a6", "a7", "a8"],
    });
  });

  it("continues past agents that do not accept programs, and lists them", async () => {
    const push = async (id: string) => {
      if (id !== "a3") throw new TakesNone(id, "node 26.1.0");
      return { unchanged: false };
    };
    const report = await pushFleet(groupsOf(ids(4), 0.5), push, () => undefined);
    expect([report.kept, report.failed, report.untouched]).toEqual([["a3"], [], []]);
    expect(report.skipped.map(({ agent_id }) => agent_id)).toEqual(["a0", "a1", "a2"]);
    expect(report.skipped[0]?.reason).toContain("a0 does not accept programs");
  });

  it("of more agents than are pushed to at once starts no other after a failure", async () => {
    const begun: string[] = [];
    const push = async (id: string) => {
      begun.push(id);
      throw new Failure("timeout", "gone");
    };
    const report = await pushFleet(groupsOf(ids(40), 1), push, () => undefined);
    expect([begun.length, report.failed.length, report.untouched.length]).toEqual([16, 16, 24]);
  });

  it("ends on a bug in blindrelay", async () => {
    const push = () => Promise.reject(new Error("bug"));
    await expect(pushFleet([["a0"]], push, () => undefined)).rejects.toThrow("bug");
  });
});
