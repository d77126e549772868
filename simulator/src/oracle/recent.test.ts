import { expect, test } from "vitest";
import { Recent } from "./recent.ts";

test("remembers the last keys that were set, and at most twice as many", () => {
  const recent = new Recent<number>(10);
  for (let n = 0; n < 1000; n += 1) {
    recent.set(`${n}`, n);
    for (let back = 0; back < Math.min(n + 1, 10); back += 1) {
      expect(recent.get(`${n - back}`)).toBe(n - back);
    }
    if (n >= 20) expect(recent.get(`${n - 20}`)).toBeUndefined();
  }
});

test("a key has the value that was set last, or none after it was deleted", () => {
  const recent = new Recent<number>(2);
  recent.set("a", 1);
  recent.set("b", 1);
  recent.set("a", 2);
  expect(recent.get("a")).toBe(2);
  recent.delete("a");
  expect(recent.get("a")).toBeUndefined();
});
