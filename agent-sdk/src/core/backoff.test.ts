import {
  authFailure,
  type Failure,
  LOST,
  linkFailure,
  REFUSED,
  RESTARTING,
} from "@blindrelay/protocol";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { seededRandom } from "../memory/index.ts";
import { Backoff } from "./backoff.ts";

const FAILURES: Failure[] = [
  LOST,
  REFUSED,
  RESTARTING,
  authFailure("LOCKED_OUT"),
  authFailure("TAKEOVER_LOOP"),
  linkFailure("REPLACED") as Failure,
];

describe("back-off", () => {
  it("never waits less than the minimum nor more than an hour and a quarter", () => {
    fc.assert(
      fc.property(
        fc.integer(),
        fc.nat(0xffffffff),
        fc.array(
          fc.record({
            failure: fc.constantFrom(...FAILURES),
            asked: fc.option(fc.double({ min: 0, noNaN: true })),
            online: fc.nat(200000),
          }),
        ),
        (seed, offset, ends) => {
          const backoff = new Backoff(seededRandom(seed), offset);
          for (const { failure, asked, online } of ends) {
            const wait = backoff.next(failure, asked, online);
            expect(wait).toBeLessThanOrEqual(4500000);
            expect(wait).toBeGreaterThanOrEqual(Math.min(asked ?? 0, 3600000));
            expect(wait).toBeGreaterThanOrEqual(failure.course === "slow" ? failure.waitMs : 0);
            if (failure === LOST && asked === null) expect(wait).toBeGreaterThanOrEqual(500);
          }
        },
      ),
    );
  });

  it("keeps one agent with a wrong token under five failures in 300 s", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const backoff = new Backoff(seededRandom(seed), 0);
        const at = [0];
        for (let i = 0; i < 12; i++) at.push((at[i] as number) + backoff.next(REFUSED, null, 0));
        for (const start of at) {
          expect(at.filter((t) => t >= start && t < start + 300000).length).toBeLessThan(5);
        }
      }),
    );
  });

  it("spreads a fleet over half of each delay", () => {
    const waits = Array.from({ length: 200 }, (_, n) =>
      new Backoff(seededRandom(n + 1), 0).next(LOST, null, 0),
    );
    expect(Math.min(...waits)).toBeLessThan(550);
    expect(Math.max(...waits)).toBeGreaterThan(950);
  });

  it("remains patient if two devices replace each other every stable minute", () => {
    const backoff = new Backoff(seededRandom(1), 0);
    const replaced = linkFailure("REPLACED") as Failure;
    expect(backoff.next(replaced, null, 70000)).toBeLessThan(120000);
    expect(backoff.next(replaced, null, 70000)).toBeGreaterThanOrEqual(120000);
    expect(backoff.next(LOST, null, 70000)).toBeLessThanOrEqual(1000);
    expect(backoff.next(replaced, null, 70000)).toBeLessThan(120000);
  });
});
