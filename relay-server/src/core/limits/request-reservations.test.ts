/** Blocks of requests, over a simulated store: never too many, and none left behind. */
import { expect, test } from "vitest";
import { ASK_AGAIN_MS, type Block, GIVE_BACK_MS, Reservations } from "./request-reservations.ts";

const world = () => {
  const asked: string[] = [];
  const givenBack: number[] = [];
  const reservations = new Reservations({
    saveRequestsUsed: (_hash, _used, added) => givenBack.push(-added),
    reserveRequests: (hash) => asked.push(hash),
  });
  const block = reservations.open("s");
  return { asked, givenBack, reservations, block };
};
const counts = (reservations: Reservations, block: Block, times: number, now: number) =>
  Array.from({ length: times }, () => reservations.count(block, now));

test("the store is asked once, and what it grants is counted", () => {
  const { asked, reservations, block } = world();
  expect(counts(reservations, block, 2, 0)).toEqual(["later", "later"]);
  expect(asked).toEqual(["s"]);
  expect(reservations.granted(block, 2, 0)).toBe(true);
  expect(counts(reservations, block, 3, 0)).toEqual(["counted", "counted", "later"]);
  expect(asked).toHaveLength(2);
});

test("what is not used is returned after a second, and not before", () => {
  const { givenBack, reservations, block } = world();
  reservations.count(block, 0);
  reservations.granted(block, 5, 0);
  reservations.count(block, 500);
  reservations.tick(500 + GIVE_BACK_MS - 1);
  expect(givenBack).toEqual([]);
  reservations.tick(500 + GIVE_BACK_MS);
  reservations.tick(9 * GIVE_BACK_MS);
  expect(givenBack).toEqual([4]);
  expect(reservations.count(block, 9 * GIVE_BACK_MS)).toBe("later");
});

test("a store with nothing left is asked once more, when others have returned theirs", () => {
  const { asked, reservations, block } = world();
  reservations.count(block, 0);
  expect(reservations.granted(block, 0, 0)).toBe(false);
  expect(reservations.count(block, 1)).toBe("later");
  reservations.tick(ASK_AGAIN_MS - 1);
  expect(asked).toHaveLength(1);
  reservations.tick(ASK_AGAIN_MS);
  expect(asked).toHaveLength(2);
  expect(reservations.granted(block, 1, ASK_AGAIN_MS)).toBe(true);
  expect(counts(reservations, block, 2, ASK_AGAIN_MS)).toEqual(["counted", "later"]);
  reservations.granted(block, 0, ASK_AGAIN_MS);
  reservations.tick(3 * ASK_AGAIN_MS);
  expect(reservations.granted(block, 0, 3 * ASK_AGAIN_MS)).toBe(true);
  expect(reservations.count(block, 3 * ASK_AGAIN_MS)).toBe("used up");
});

test("a store that is unavailable refuses for a second, and uses nothing up", () => {
  const { reservations, block } = world();
  reservations.count(block, 0);
  expect(reservations.granted(block, null, 0)).toBe(true);
  expect(reservations.count(block, 999)).toBe("away");
  expect(reservations.count(block, 1000)).toBe("later");
});
