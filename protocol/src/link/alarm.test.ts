import { expect, it } from "vitest";
import { Alarm } from "./alarm.ts";

const timerOf = (set: Map<number, () => void>) => ({
  now: () => 0,
  set: (ms: number, fn: () => void): number => {
    set.set(ms, fn);
    return ms;
  },
  clear: (handle: unknown): void => void set.delete(handle as number),
});

it("has one timer at most, and is not set while it fires", () => {
  const set = new Map<number, () => void>();
  const alarm = new Alarm(timerOf(set));
  const heard: string[] = [];
  alarm.clear();
  alarm.set(1, () => heard.push("replaced"));
  alarm.set(2, () => heard.push(`set: ${alarm.isSet}`));
  expect([...set.keys()]).toEqual([2]);
  expect(alarm.isSet).toBe(true);
  set.get(2)?.();
  expect(heard).toEqual(["set: false"]);
  alarm.set(3, () => heard.push("cleared"));
  alarm.clear();
  expect([...set.keys()]).toEqual([2]);
  expect(alarm.isSet).toBe(false);
});
