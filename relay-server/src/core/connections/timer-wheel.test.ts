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

  it("still visits every other item of a slot when one is removed", () => {
    const wheel = new TimerWheel<ReturnType<typeof item>>(0);
    const [a, b, c] = [item(), item(), item()];
    for (const one of [a, b, c]) wheel.set(one, 1_000);
    wheel.remove(a);
    wheel.remove(c);
    const visited: unknown[] = [];
    wheel.tick(1_000, (one) => visited.push(one));
    expect(visited).toHaveLength(1);
    expect(visited[0]).toBe(b);
  });

  it("does not visit what an earlier visit of the same tick moved or removed", () => {
    const wheel = new TimerWheel<ReturnType<typeof item>>(0);
    const [a, moved, removed] = [item(), item(), item()];
    for (const one of [a, moved, removed]) wheel.set(one, 1_000);
    const visited: unknown[] = [];
    wheel.tick(1_000, (one) => {
      visited.push(one);
      wheel.set(moved, 2_000);
      wheel.remove(removed);
    });
    expect(visited).toEqual([a]);
    wheel.tick(2_000, (one) => visited.push(one));
    expect(visited).toHaveLength(2);
    expect(visited[1]).toBe(moved);
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

  it("looks at an item only in the turns of its slot", () => {
    const wheel = new TimerWheel<ReturnType<typeof item>>(0);
    let looks = 0;
    const watched = {
      ...item(),
      at: null as number | null,
      get wakeAt(): number | null {
        looks += 1;
        return this.at;
      },
      set wakeAt(at) {
        this.at = at;
      },
    };
    wheel.set(watched, 4_000);
    wheel.set(watched, 56_200);
    looks = 0;
    for (let now = 100; now < 56_200; now += 100) wheel.tick(now, () => undefined);
    expect(looks).toBe(1); // a round of the wheel takes 51.2 s
    let visits = 0;
    wheel.tick(56_200, () => {
      visits += 1;
    });
    expect(visits).toBe(1);
    looks = 0;
    for (let now = 56_300; now < 110_000; now += 100) wheel.tick(now, () => undefined);
    expect(looks).toBe(0);
  });
});
