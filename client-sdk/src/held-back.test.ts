/**
 * A relay that holds packets back, and devices whose clocks differ: no call runs more than 5 s
 * after its deadline, none runs twice, and each ends once, by its deadline.
 */
import { EXPIRES_CLOCK_MS } from "@blindrelay/protocol";
import type { Version } from "@blindrelay/protocol/crypto";
import fc from "fast-check";
import { expect, it } from "vitest";
import { type Ending, SECRET, World } from "./testing/world.ts";

const at = fc.nat(60_000);

const schedule = fc.record({
  seed: fc.integer({ min: 1 }),
  version: fc.constantFrom<Version>("1", "3"),
  rate: fc.constantFrom(0.999, 1, 1.05, 3, 20),
  renewAfterMs: fc.constantFrom(60_000, 86_400_000),
  listens: fc.boolean(),
  calls: fc.array(
    fc.record({
      at,
      timeoutMs: fc.integer({ min: 50, max: 10_000 }),
      idempotent: fc.boolean(),
      handlerMs: fc.oneof({ weight: 3, arbitrary: fc.constant(0) }, fc.nat(3_000)),
    }),
    { minLength: 1, maxLength: 15 },
  ),
  /** What is sent to the agent meanwhile comes at its end, in order. */
  holds: fc.array(fc.record({ at, ms: fc.nat(30_000) }), { maxLength: 4 }),
  /** Of each packet of the agent. */
  delaysMs: fc.array(fc.oneof({ weight: 5, arbitrary: fc.constant(5) }, fc.nat(4_900)), {
    minLength: 1,
    maxLength: 20,
  }),
});

it("runs no call late or twice, whatever the relay holds back", async () => {
  let late = 0;
  let repeated = 0;
  await fc.assert(
    fc.asyncProperty(
      schedule,
      async ({ seed, version, rate, renewAfterMs, listens, calls, holds, delaysMs }) => {
        const world = new World(seed);
        const { clock, relay } = world;
        const agent = world.agent("pump-7", SECRET, version);
        agent.rate = rate;
        const ran = new Map<number, number>();
        agent.handlers.set("open", ({ params, answer }) => {
          const [n, handlerMs, deadline] = params as [number, number, number];
          expect(clock.now() - deadline).toBeLessThanOrEqual(EXPIRES_CLOCK_MS);
          ran.set(n, (ran.get(n) ?? 0) + 1);
          clock.set(handlerMs, () => answer(n));
        });
        const client = await world.connected();
        const pump = client.agent("pump-7", SECRET, { version, renewAfterMs });
        if (listens) pump.on("event", () => undefined);
        relay.toAgent = () => {
          const now = clock.now();
          const ends = holds.filter((hold) => hold.at <= now && now < hold.at + hold.ms);
          return Math.max(5, ...ends.map((hold) => hold.at + hold.ms - now));
        };
        let packet = 0;
        relay.toClient = () => delaysMs[packet++ % delaysMs.length] as number;
        const endings: { n: number; ending: Ending; deadline: number; idempotent: boolean }[] = [];
        calls.forEach(({ at, timeoutMs, idempotent, handlerMs }, n) => {
          clock.set(at, () => {
            const deadline = clock.now() + timeoutMs;
            const before = agent.late;
            const call = pump.call("open", [n, handlerMs, deadline], { timeoutMs, idempotent });
            call.then(
              () => {
                if (agent.late > before) repeated++;
              },
              () => undefined,
            );
            endings.push({ n, ending: world.follow(call), deadline, idempotent });
          });
        });
        while (clock.now() < 100_000) {
          await world.run(500);
          for (const { ending, deadline } of endings) {
            if (clock.now() >= deadline) expect(ending.times).toBe(1);
          }
        }
        expect(endings).toHaveLength(calls.length);
        for (const { n, ending, idempotent } of endings) {
          if (ending.error === undefined) expect(ending.result).toBe(n);
          if (!idempotent) expect(ran.get(n) ?? 0).toBeLessThanOrEqual(1);
          if (ending.error?.retryable && !idempotent) expect(ran.has(n)).toBe(false);
        }
        late += agent.late;
        client.close();
        await world.run(100_000);
        expect(clock.pending).toBe(0);
      },
    ),
    { numRuns: 150 },
  );
  // The schedules must be hard enough to matter.
  expect(late).toBeGreaterThan(50);
  expect(repeated).toBeGreaterThan(20);
});
