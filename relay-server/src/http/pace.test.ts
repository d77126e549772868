/** How many requests begin in one turn of the event loop. */
import { expect, test } from "vitest";
import { Pace } from "./pace.ts";
import type { HttpProblem } from "./problem.ts";

/** For each of `count` requests that keep the thread busy for `ms`: the turn in which it began. */
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
      await pace.begin("192.0.2.1");
      const beganIn = turn;
      for (const end = performance.now() + ms; performance.now() < end; );
      return beganIn;
    }),
  );
  goesOn = false;
  return began;
};

test("a slow one begins alone", async () => {
  const began = await turnsOf(8, 3);
  expect(new Set(began).size).toBe(8);
  expect(began).toEqual(began.toSorted((a, b) => a - b));
});

test("quick ones begin together, but at most 16", async () => {
  const began = await turnsOf(64, 0);
  expect(began).toEqual(began.toSorted((a, b) => a - b));
  const most = Math.max(...began.map((turn) => began.filter((other) => other === turn).length));
  expect(most).toBeGreaterThan(1);
  expect(most).toBeLessThanOrEqual(16);
});

test("waiting messages are written before each request, not after all of them", async () => {
  const order: string[] = [];
  const pace = new Pace(() => order.push("messages"));
  const begin = async (name: string): Promise<void> => {
    await pace.begin("192.0.2.1");
    order.push(name);
  };
  await Promise.all([begin("a"), begin("b")]);
  expect(order).toEqual(["messages", "a", "messages", "b"]);
});

test("the waiting requests are limited; beyond that one of the heaviest address is refused", async () => {
  const pace = new Pace(() => undefined, 3);
  const outcome = (address: string): Promise<string> =>
    pace.begin(address).then(
      () => "began",
      (error: HttpProblem) => `${error.code} ${error.headers["retry-after"]}`,
    );
  const greedy = Array.from({ length: 4 }, () => outcome("192.0.2.1"));
  const other = outcome("192.0.2.2");
  expect(await Promise.all([...greedy, other])).toEqual([
    "began",
    "began",
    "UNAVAILABLE 1",
    "UNAVAILABLE 1",
    "began",
  ]);
  expect(await outcome("192.0.2.1")).toBe("began");
});

test("continuing and arriving requests take turns", async () => {
  const pace = new Pace();
  const order: string[] = [];
  const goesOn = async (): Promise<void> => {
    for (let i = 0; i < 3; i++) {
      await pace.goOn("ann");
      order.push("goes on");
    }
  };
  const begins = async (): Promise<void> => {
    await pace.begin("192.0.2.1");
    order.push("begins");
  };
  await Promise.all([goesOn(), goesOn(), begins(), begins()]);
  expect(order.slice(0, 4).toSorted()).toEqual(["begins", "begins", "goes on", "goes on"]);
});
