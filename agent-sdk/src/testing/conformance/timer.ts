/** What every TimerPort must do. */
import { describe, expect, it } from "vitest";
import type { TimerPort } from "../../ports.ts";

export interface TimerUnderTest {
  readonly timer: TimerPort;
  /** Advances time until `done` is true. */
  until(done: () => boolean): Promise<void>;
}

export const timerConformance = (name: string, make: () => TimerUnderTest): void => {
  describe(`timer conformance: ${name}`, () => {
    it("fires once, not early, and not from inside set", async () => {
      const { timer, until } = make();
      const start = timer.now();
      const fired: number[] = [];
      timer.set(20, () => fired.push(timer.now() - start));
      expect(fired).toEqual([]);
      await until(() => fired.length > 0);
      let later = false;
      timer.set(30, () => {
        later = true;
      });
      await until(() => later);
      expect(fired).toHaveLength(1);
      expect(fired[0]).toBeGreaterThanOrEqual(20);
    });

    it("fires a timer of zero, but not immediately", async () => {
      const { timer, until } = make();
      let fired = false;
      timer.set(0, () => {
        fired = true;
      });
      expect(fired).toBe(false);
      await until(() => fired);
    });

    it("does not fire a cleared timer, and accepts a late or double clear", async () => {
      const { timer, until } = make();
      let cleared = 0;
      let kept = 0;
      const first = timer.set(5, () => cleared++);
      const second = timer.set(10, () => kept++);
      timer.clear(first);
      timer.clear(first);
      await until(() => kept > 0);
      timer.clear(second);
      expect([cleared, kept]).toEqual([0, 1]);
    });

    it("fires in order of deadline", async () => {
      const { timer, until } = make();
      const order: string[] = [];
      timer.set(60, () => order.push("late"));
      timer.set(5, () => order.push("early"));
      await until(() => order.length === 2);
      expect(order).toEqual(["early", "late"]);
    });

    it("accepts months without firing immediately", async () => {
      const { timer, until } = make();
      let early = false;
      const handle = timer.set(40 * 86400 * 1000, () => {
        early = true;
      });
      let passed = false;
      timer.set(20, () => {
        passed = true;
      });
      await until(() => passed);
      timer.clear(handle);
      expect(early).toBe(false);
    });

    it("has a clock that never goes back", async () => {
      const { timer, until } = make();
      let last = timer.now();
      for (let i = 0; i < 3; i++) {
        let fired = false;
        timer.set(2, () => {
          fired = true;
        });
        await until(() => fired);
        expect(timer.now()).toBeGreaterThanOrEqual(last);
        last = timer.now();
      }
    });
  });
};
