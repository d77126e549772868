import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { TimerWheel } from "./timer-wheel.ts";

const item = () => ({ wakeAt: null as number | null, wakeSlot: 0, wakePlace: 0 });

describe("TimerWheel", () => {
  it("visits each item once, never before its deadline and at the first tick after it", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 0, max: 200_000 }), { maxLength: 50 }),
        fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 30 }),
        (deadlines, steps) => {
          const wheel = new TimerWheel<ReturnType<typeof item>>(0);
          const items = deadlines.map((at) => {
            const one = item();
            wheel.set(one, at);
            return { one, at, visits: [] as number[] };
          });
          let now = 0;
          for (const step of [...steps, 300_000]) {
            const before = now;
            now += step;
            wheel.tick(now, (one) => items.find((each) => each.one === one)?.visits.push(now));
            for (const { at, visits } of items) {
              if (at > now) expect(visits).toEqual([]);
              // A deadline is visited at most one tick late.
              if (at + 100 <= now && at > before) expect(visits).toEqual([now]);
            }
          }
          for (const { visits } of items) expect(visits).toHaveLength(1);
        },
      ),
    );
  });

  it("moves and removes, also while it visits", () => {
    const wheel = new TimerWheel<ReturnType<typeof item>>(0);
    const [a, b, c] = [item(), item(), item()];
    for (const one of [a, b, c]) wheel.set(one, 1_000);
    wheel.remove(c);
    wheel.set(b, 2_000);
    const visited: unknown[] = [];
    wheel.tick(1_000, (one) => {
      visited.push(one);
      wheel.set(a, 3_000);
    });
    expect(visited).toEqual([a]);
    wheel.tick(2_000, (one) => {
      visited.push(one);
      wheel.remove(a);
    });
    wheel.tick(9_000, (one) => visited.push(one));
    expect(visited).toEqual([a, b]);
  });

  it("visits a past deadline at the next tick", () => {
    const wheel = new TimerWheel<ReturnType<typeof item>>(10_000);
    const one = item();
    wheel.set(one, 5);
    let visits = 0;
    wheel.tick(10_050, () => {
      visits += 1;
    });
    wheel.tick(10_100, () => {
      visits += 1;
    });
    expect(visits).toBe(1);
  });
});
