import { describe, expect, it } from "vitest";
import { CallError } from "./errors.ts";
import {
  Fleet,
  type FleetOutcome,
  outcomeOf,
  type RolloutOptions,
  rollOut,
  stagesOf,
} from "./fleet.ts";

const ids = (count: number): string[] => Array.from({ length: count }, (_, i) => `a${i}`);

/** Runs to the end; `fails`: the agents that do not come out ok. */
const roll = async (
  count: number,
  fails: (n: number) => boolean,
  options: RolloutOptions = {},
): Promise<{ outcomes: FleetOutcome[]; begun: number }> => {
  let begun = 0;
  const work = async (id: string) => {
    begun++;
    await Promise.resolve();
    return outcomeOf(id, fails(Number(id.slice(1))) ? "error" : "ok", null);
  };
  const outcomes: FleetOutcome[] = [];
  for await (const outcome of rollOut(ids(count), work, options)) outcomes.push(outcome);
  return { outcomes, begun };
};

const counts = (outcomes: readonly FleetOutcome[]): Record<string, number> => {
  const found: Record<string, number> = {};
  for (const { outcome } of outcomes) found[outcome] = (found[outcome] ?? 0) + 1;
  return found;
};

describe("stages", () => {
  it.each([
    [1000, 0.05, [50, 100, 200, 400, 1000]],
    [100, 0.15, [15, 20, 40, 100]],
    [3, 0.05, [1, 2, 3]],
    [7, 1, [7]],
    [7, undefined, [7]],
    [0, 0.05, []],
  ])("of %i agents from %d on end at %o", (count, staged, ends) => {
    expect(stagesOf(count, staged)).toEqual(ends);
  });
});

describe("a rollout", () => {
  it("has an outcome for every agent, and works on no more at once than asked for", async () => {
    let now = 0;
    let most = 0;
    const work = async (id: string) => {
      most = Math.max(most, ++now);
      await new Promise((done) => setTimeout(done, 0));
      now--;
      return outcomeOf(id, "ok", null);
    };
    const seen: string[] = [];
    for await (const { agentId } of rollOut(ids(50), work, { atOnce: 4 })) seen.push(agentId);
    expect([seen.sort(), most]).toEqual([ids(50).sort(), 4]);
  });

  it("works once on an agent that is named more than once, as a relay's list may do", async () => {
    const begun: string[] = [];
    const work = async (id: string) => {
      begun.push(id);
      return outcomeOf(id, "ok", null);
    };
    const seen: string[] = [];
    const named = ["a0", "a1", "a0", "a1", "a2", "a0"];
    for await (const { agentId } of rollOut(named, work, { staged: 0.5 })) seen.push(agentId);
    expect([begun, seen]).toEqual([
      ["a0", "a1", "a2"],
      ["a0", "a1", "a2"],
    ]);
  });

  it("goes on to a stage only if the one before was well", async () => {
    const one = await roll(1000, (n) => n === 49, { staged: 0.05 });
    expect([one.begun, counts(one.outcomes)]).toEqual([50, { ok: 49, error: 1, skipped: 950 }]);
    const few = await roll(1000, (n) => n === 49, { staged: 0.05, abortOver: 0.02 });
    expect([few.begun, counts(few.outcomes)]).toEqual([1000, { ok: 999, error: 1 }]);
  });

  it("stops over its share of bad outcomes, from 20 on", async () => {
    const { begun, outcomes } = await roll(1000, (n) => n < 3, { abortOver: 0.02, atOnce: 1 });
    expect([begun, counts(outcomes)]).toEqual([20, { ok: 17, error: 3, skipped: 980 }]);
    expect(outcomes.at(-1)?.error).toContain("3 of 20 outcomes were not ok, over 2%");
  });

  it("that fails on a tenth of 1,000 devices stops before 120 have it, for any 20 seeds", async () => {
    for (let seed = 1; seed <= 20; seed++) {
      let state = seed;
      const draw = (): number => {
        state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
        return state / 2 ** 32;
      };
      const bad = ids(1000).map(() => draw() < 0.1);
      const options = { staged: 0.05, abortOver: 0.02 };
      const { outcomes } = await roll(1000, (n) => bad[n] === true, options);
      expect(counts(outcomes).ok ?? 0).toBeLessThan(120);
      expect(outcomes).toHaveLength(1000);
    }
  });

  it("counts what an earlier run found, and leaves those agents out", async () => {
    const before = ids(30).map((id) => outcomeOf(id, "error", null));
    const { begun, outcomes } = await roll(100, () => false, { before, abortOver: 0.5 });
    expect([begun, outcomes.length]).toEqual([0, 70]);
    const again = await roll(100, () => false, { before });
    expect([again.begun, counts(again.outcomes)]).toEqual([70, { ok: 70 }]);
  });

  it("begins nothing more once it is aborted", async () => {
    const stop = new AbortController();
    const fails = (n: number): boolean => {
      if (n === 4) stop.abort();
      return false;
    };
    const { begun, outcomes } = await roll(100, fails, { atOnce: 1, signal: stop.signal });
    expect([begun, counts(outcomes)]).toEqual([5, { ok: 5 }]);
  });

  it("ends with the error of work that rejects, once the outcomes before it are told", async () => {
    const work = async (id: string) => {
      if (id === "a1") throw new Error("no disk");
      return outcomeOf(id, "ok", null);
    };
    const told: string[] = [];
    const all = async () => {
      for await (const { agentId } of rollOut(ids(3), work, { atOnce: 2 })) told.push(agentId);
    };
    await expect(all()).rejects.toThrow("no disk");
    expect(told).toEqual(["a0"]);
  });

  it("needs nothing that the oldest Node of this package lacks", async () => {
    const { withResolvers } = Promise;
    try {
      Reflect.deleteProperty(Promise, "withResolvers");
      const { outcomes } = await roll(3, () => false);
      expect(counts(outcomes)).toEqual({ ok: 3 });
    } finally {
      Object.assign(Promise, { withResolvers });
    }
  });

  it.each([{ staged: 0 }, { staged: 1.5 }, { abortOver: -1 }, { atOnce: 0 }])(
    "refuses %o",
    async (options) => {
      await expect(roll(1, () => false, options)).rejects.toThrow(CallError);
    },
  );
});

describe("a call to many", () => {
  const callOne = async (
    answer: (method: string) => unknown,
    options: object = {},
  ): Promise<FleetOutcome> => {
    const agent = { call: async (method: string) => answer(method) };
    const fleet = new Fleet(
      async () => ["a0"],
      () => agent,
    );
    for await (const outcome of fleet.call("act", {}, options)) return outcome;
    throw new Error("no outcome");
  };
  const failing = (code: ConstructorParameters<typeof CallError>[0], at: string, more = {}) =>
    callOne((method) => {
      if (method === at) throw new CallError(code, "why", more);
    }, more);
  const remote = { remote: { code: 7, message: "no" } };

  it.each([
    ["REMOTE", "act", remote, "error"],
    ["BAD_ANSWER", "act", {}, "error"],
    ["AGENT_OFFLINE", "system.ping", {}, "offline"],
    ["TIMED_OUT", "system.ping", {}, "offline"],
    ["AGENT_OFFLINE", "act", { retryable: true }, "offline"],
    ["TIMED_OUT", "act", { retryable: true }, "offline"],
    ["TIMED_OUT", "act", { retryable: true, idempotent: true }, "unknown"],
    ["TIMED_OUT", "act", {}, "unknown"],
    ["OUTCOME_UNKNOWN", "act", {}, "unknown"],
    ["CLOSED", "act", {}, "unknown"],
    ["AGENT_NOT_FOUND", "system.ping", {}, "skipped"],
  ] as const)("that fails with %s at %s (%o) is %s", async (code, at, more, outcome) => {
    expect(await failing(code, at, more)).toMatchObject({ outcome, error: "why", result: null });
  });

  it("waits for its record before it goes out, and does not go out without one", async () => {
    const log: string[] = [];
    const note = (method: string): number => log.push(method);
    const sending = async (): Promise<void> => {
      await Promise.resolve();
      log.push("recorded");
    };
    expect(await callOne(note, { sending })).toMatchObject({ outcome: "ok", result: 3 });
    expect(log).toEqual(["system.ping", "recorded", "act"]);
    const full = () => Promise.reject(new Error("disk full"));
    await expect(callOne(note, { sending: full })).rejects.toThrow("disk full");
    expect(log).toHaveLength(4);
  });

  it("skips agents whose secret is not known here", async () => {
    const fleet = new Fleet(
      async () => ["a0"],
      () => null,
    );
    for await (const outcome of fleet.call("act"))
      expect(outcome).toMatchObject({
        outcome: "skipped",
        error: expect.stringContaining("secret"),
      });
  });
});
