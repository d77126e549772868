/** How many requests of one user run at a time. */
import { expect, test } from "vitest";
import { ConcurrencyLimit } from "./concurrency-limit.ts";
import { Pace } from "./pace.ts";

const pass = () => new Promise((resolve) => setImmediate(resolve));

test("each user may run a few at a time, then one more for each that ends", async () => {
  const limit = new ConcurrencyLimit(2, 10, new Pace());
  const ends: (() => void)[] = [];
  const take = (user: string) => limit.take(user).then((end) => ends.push(end as () => void));
  for (let i = 0; i < 5; i++) take("ann");
  take("bob");
  for (let i = 0; i < 3; i++) await pass();
  expect(ends).toHaveLength(3);
  ends[0]?.();
  ends[0]?.(); // calling it again has no effect
  for (let i = 0; i < 3; i++) await pass();
  expect(ends).toHaveLength(4);
  while (limit.size > 0) {
    for (const end of ends) end();
    await pass();
  }
  expect(ends).toHaveLength(6);
});

test("each turn begins in a separate turn of the event loop", async () => {
  const limit = new ConcurrencyLimit(1, 10, new Pace());
  let other = false;
  setImmediate(() => {
    other = true;
  });
  const end = await limit.take("ann");
  expect(other).toBe(true);
  end?.();
});

test("a few wait, and one more is refused", async () => {
  const limit = new ConcurrencyLimit(1, 1, new Pace());
  const end = await limit.take("ann");
  const waiting = limit.take("ann");
  expect(await limit.take("ann")).toBeNull();
  expect(await limit.take("bob")).not.toBeNull();
  end?.();
  expect(await waiting).not.toBeNull();
});
