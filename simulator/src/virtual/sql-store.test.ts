import { makeToken } from "@blindrelay/protocol";
import type { Agent } from "@blindrelay/protocol/schema/rest";
import { afterEach, expect, test, vi } from "vitest";
import { checkScenario } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { drawScenario } from "../search/draw.ts";
import { loadPrograms } from "./programs.ts";
import { type RunOptions, runVirtual } from "./run.ts";
import { SqlStore } from "./sql-store.ts";

afterEach(() => vi.restoreAllMocks());

const play = (scenario: Scenario, options: Partial<RunOptions>) => {
  const programs = loadPrograms(scenario, ".");
  return runVirtual(scenario, { seed: 1, programs, crypto: "model", ...options });
};

const eventful = {
  name: "eventful",
  duration: "110s",
  devices: [{ group: "g", count: 3, kind: "valve" }],
  clients: [{ devices: "g", every: "3s", presence: true }],
  faults: [
    { at: "20s", kind: "operator.rotate", for: "5s", share: "50%" },
    { at: "40s", kind: "relay.crash" },
    { at: "60s", kind: "store.unsure", for: "10s", share: "50%" },
    { at: "62s", kind: "relay.restart" },
    { at: "80s", kind: "store.away", for: "10s" },
    { at: "82s", kind: "net.cut", for: "2s" },
  ],
  allow: [{ rate: "100%" }],
} as const as unknown as Scenario;

/** `BLINDRELAY_SCENARIOS=500` compares more of them. */
const RANDOM = Number(process.env.BLINDRELAY_SCENARIOS ?? 6);

test("a run takes the same course with the relay's own store as with the model", async () => {
  const drawn = Array.from({ length: RANDOM }, (_, seed): Scenario => {
    const { relay: _relay, drivers = [], ...rest } = drawScenario(seed);
    const faults = (rest.faults ?? [])
      .filter(({ kind }) => !/^bus|freeze/.test(kind))
      .map(({ node: _node, ...fault }) => fault);
    // Serial lines say nothing of a store, and most of the time would be theirs.
    return { ...rest, faults, drivers: drivers.filter(({ kind }) => kind !== "serial") };
  });
  for (const [seed, scenario] of [eventful, ...drawn].entries()) {
    const checked = checkScenario(scenario, ".").scenario;
    const [model, real] = [
      await play(checked, { seed }),
      await play(checked, { seed, hasRealStore: true }),
    ];
    expect(real.world.store).toBeInstanceOf(SqlStore);
    expect([seed, real.report.trace, real.violation]).toEqual([seed, model.report.trace, null]);
  }
});

test("a login that nobody waits for any more leads to no session in either store", async () => {
  const { faults: _faults, ...rest } = eventful;
  const faults = [
    { at: "0s", kind: "store.slow", for: "10s", latency: "5s" },
    { at: "3s", kind: "net.cut", for: "1s" },
    // From here on the seed's draws show whether both have drawn as many tokens.
    { at: "60s", kind: "store.unsure", for: "40s", share: "50%" },
    { at: "62s", kind: "net.cut", for: "1s" },
    { at: "75s", kind: "net.cut", for: "1s" },
  ];
  const scenario = { ...rest, same: true, faults } as unknown as Scenario;
  expect((await play(scenario, {})).report.oracles.at(-1)).toMatchObject({
    name: "same",
    ok: true,
  });
});

test("a store that answers otherwise than the model breaks a run that must take one course", async () => {
  const { issueAgent } = SqlStore.prototype;
  vi.spyOn(SqlStore.prototype, "issueAgent").mockImplementation(function (this: SqlStore, ...args) {
    issueAgent.apply(this, args);
    return makeToken("agent", Buffer.alloc(32));
  });
  // Without calls: the two runs would seal different texts with the same nonces.
  const { report } = await play({ ...eventful, clients: [], same: true }, {});
  expect(report.oracles.at(-1)).toEqual({
    name: "same",
    ok: false,
    detail: "with the relay's own store, the run takes another course",
  });
});

test("REST that says something else of a device than the hub breaks a run", async () => {
  const store = SqlStore.prototype as unknown as {
    request: (...args: unknown[]) => Promise<Agent>;
  };
  const { request } = store;
  vi.spyOn(store, "request").mockImplementation(async function (this: typeof store, ...args) {
    const answer = await request.apply(this, args);
    return answer?.online === true ? { ...answer, online: false } : answer;
  });
  const { violation } = await play(eventful, { hasRealStore: true });
  expect(violation).toMatchObject({
    oracle: "presence",
    detail: expect.stringMatching(/^REST says that g-0000. is offline$/),
  });
});
