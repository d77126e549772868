/** The order of service, and which item is lost if there is no room. */
import { expect, test } from "vitest";
import { FairQueue } from "./fair-queue.ts";

const drain = (queue: FairQueue<string>): string[] => {
  const items: string[] = [];
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item);
  return items;
};

test("keys are served in turn, and the items of each in order", () => {
  const queue = new FairQueue<string>(10);
  for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.push(item.charAt(0), item);
  expect(queue.size).toBe(6);
  expect(drain(queue)).toEqual(["a1", "b1", "c1", "a2", "b2", "a3"]);
  expect(queue.size).toBe(0);
});

test("a full queue drops the newest item of the key with the most, or the new item", () => {
  const queue = new FairQueue<string>(3);
  for (const item of ["a1", "a2", "a3"]) expect(queue.push("a", item)).toBeNull();
  expect(queue.push("a", "a4")).toBe("a4");
  expect(queue.push("b", "b1")).toBe("a3");
  expect(queue.push("c", "c1")).toBe("a2");
  expect(queue.push("d", "d1")).toBe("d1");
  expect(drain(queue)).toEqual(["a1", "b1", "c1"]);
  expect(queue.push("d", "d1")).toBeNull();
});
