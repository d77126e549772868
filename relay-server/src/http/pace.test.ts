/** How many requests begin in one turn of the event loop. */
import { expect, test } from "vitest";
import { Pace } from "./pace.ts";

/** For each of `count` requests that keep the thread busy for `ms`, in which turn it began. */
const turnsOf = async (count: number, ms: number): Promise<number[]> => {
  const pace = new Pace();
  let turn = 0;
  let goesOn = true;
  const countTurns = (): void => {
    turn += 1;
    if (goesOn) setImmediate(countTurns);
  };
  setImmediate(countTurns);
  const began = await Promise.all(
    Array.from({ length: count }, async () => {
      await pace.next();
      const beganIn = turn;
      for (const end = performance.now() + ms; performance.now() < end; );
      return beganIn;
    }),
  );
  goesOn = false;
  return began;
};

test("one that takes long begins alone", async () => {
  const began = await turnsOf(8, 3);
  expect(new Set(began).size).toBe(8);
  expect(began).toEqual(began.toSorted((a, b) => a - b));
});

test("quick ones begin together, and not more than 16", async () => {
  const began = await turnsOf(64, 0);
  expect(began).toEqual(began.toSorted((a, b) => a - b));
  const most = Math.max(...began.map((turn) => began.filter((other) => other === turn).length));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(16);
});

test("messages that wait go out before each request, not behind all of them", async () => {
  const order: string[] = [];
  const pace = new Pace(() => order.push("messages"));
  const begin = async (name: string): Promise<void> => {
    await pace.next();
    order.push(name);
  };
  await Promise.all([begin("a"), begin("b")]);
  expect(order).toEqual(["messages", "a", "messages", "b"]);
});
