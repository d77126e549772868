/**
 * Any schedule of loss, delay, reordering, restarts, cut links and a lying relay: every call ends
 * exactly once and by its deadline, with the correct answer or a documented error, and no call that
 * is not idempotent is executed twice.
 */
import fc from "fast-check";
import { expect, it } from "vitest";
import { CALL_ERRORS } from "./errors.ts";
import { type Ending, SECRET, World } from "./testing/world.ts";

const AGENTS = ["a", "b"];
const LIES = ["AGENT_OFFLINE", "UNKNOWN_SESSION", "SID_IN_USE", "RATE_LIMITED", "SLOW_CONSUMER"];
const LONGEST_MS = 40_000;

const agentIndex = fc.nat(AGENTS.length - 1);
const at = fc.nat(60_000);

const callSchedule = fc.record({
  at,
  agent: agentIndex,
  timeoutMs: fc.integer({ min: 50, max: LONGEST_MS }),
  idempotent: fc.boolean(),
  handlerMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(5_000)),
  abortAfterMs: fc.option(fc.nat(20_000), { freq: 8, nil: null }),
});

const fault = fc.record({
  at,
  agent: agentIndex,
  kind: fc.constantFrom("restart", "offline", "online", "cut", "forget", "relay restart", "lie"),
  lie: fc.constantFrom(...LIES),
});

/** The fate of successive packets: lost, or delivered late and possibly overtaken. */
const fate = fc.oneof(
  { weight: 8, arbitrary: fc.constant(5) },
  { weight: 2, arbitrary: fc.nat(3_000) },
  { weight: 1, arbitrary: fc.constant(null) },
);

const schedule = fc.record({
  seed: fc.integer({ min: 1 }),
  calls: fc.array(callSchedule, { minLength: 1, maxLength: 12 }),
  faults: fc.array(fault, { maxLength: 8 }),
  fates: fc.array(fate, { minLength: 1, maxLength: 40 }),
});

interface Expected {
  readonly n: number;
  readonly ending: Ending;
  readonly deadline: number;
  readonly idempotent: boolean;
}

it("ends every call once, correctly or with a documented error", async () => {
  const codes = new Map<string, number>();
  await fc.assert(
    fc.asyncProperty(schedule, async ({ seed, calls, faults, fates }) => {
      const world = new World(seed);
      const { clock, relay } = world;
      const executed = new Map<number, number>();
      const agents = AGENTS.map((id) => {
        const agent = world.agent(id);
        agent.handlers.set("double", ({ params, answer }) => {
          const [n, handlerMs] = params as [number, number];
          executed.set(n, (executed.get(n) ?? 0) + 1);
          clock.set(handlerMs, () => answer(n * 2));
        });
        return agent;
      });
      const client = await world.connected();
      let packet = 0;
      const nextFate = () => fates[packet++ % fates.length] as number | null;
      relay.toAgent = nextFate;
      relay.toClient = nextFate;

      const expected: Expected[] = [];
      calls.forEach(({ at, agent, timeoutMs, idempotent, handlerMs, abortAfterMs }, n) => {
        clock.set(at, () => {
          const controller = new AbortController();
          const { signal } = controller;
          const options = { timeoutMs, idempotent, signal };
          const target = client.agent(AGENTS[agent] as string, SECRET);
          const ending = world.follow(target.call("double", [n, handlerMs], options));
          expected.push({ n, ending, deadline: clock.now() + timeoutMs, idempotent });
          if (abortAfterMs !== null) clock.set(abortAfterMs, () => controller.abort());
        });
      });
      for (const { at, agent: index, kind, lie } of faults) {
        const agent = agents[index];
        if (agent === undefined) continue;
        clock.set(at, () => {
          if (kind === "restart") agent.restart();
          else if (kind === "offline") agent.goOffline();
          else if (kind === "online") agent.goOnline();
          else if (kind === "cut") relay.cutAll();
          else if (kind === "forget") relay.forgetBindings();
          else if (kind === "relay restart") relay.restart(3);
          else {
            for (const sid of agent.sessions.held()) {
              relay.errorToAll(lie, sid);
            }
          }
        });
      }
      while (clock.now() < 110_000) {
        await world.run(500);
        for (const { ending, deadline } of expected) {
          if (clock.now() >= deadline) expect(ending.times).toBe(1);
        }
      }
      expect(expected).toHaveLength(calls.length);
      for (const { n, ending, idempotent } of expected) {
        const code = ending.error?.code ?? "ok";
        codes.set(code, (codes.get(code) ?? 0) + 1);
        if (ending.error === undefined) expect(ending.result).toBe(n * 2);
        else expect(Object.keys(CALL_ERRORS)).toContain(ending.error.code);
        if (!idempotent) expect(executed.get(n) ?? 0).toBeLessThanOrEqual(1);
        if (ending.error?.retryable && !idempotent) expect(executed.has(n)).toBe(false);
      }
      client.close();
      await world.run(100_000);
      expect(clock.pending).toBe(0);
    }),
    { numRuns: 150 },
  );
  // The schedules must be hard enough to matter, but not so hard that nothing works.
  const total = [...codes.values()].reduce((sum, count) => sum + count, 0);
  expect(codes.get("ok") ?? 0).toBeGreaterThan(total / 4);
  for (const code of ["TIMED_OUT", "OUTCOME_UNKNOWN", "AGENT_OFFLINE", "ABORTED"]) {
    expect(codes.get(code) ?? 0, code).toBeGreaterThan(0);
  }
});

it("delivers calls in the order they were made, while nothing is lost", async () => {
  const world = new World();
  const agent = world.agent();
  const client = await world.connected();
  const target = client.agent("pump-7", SECRET);
  const calls = Array.from({ length: 300 }, (_, n) => world.follow(target.call("echo", [n])));
  await world.run(5_000);
  expect(calls.map(({ result }) => result)).toEqual(calls.map((_, n) => [n]));
  expect(agent.executed).toEqual(calls.map((_, n) => `echo:[${n}]`));
});
