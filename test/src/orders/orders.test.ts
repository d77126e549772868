/**
 * Every order of what a hostile relay can do, up to a number of moves, over the real sessions: with
 * all rules nothing breaks, and without any one of them something does (docs/proofs.md).
 */
import { beforeAll, describe, expect, test } from "vitest";
import type { Found, Job } from "./hunt.ts";
import { hunt } from "./hunters.ts";
import { boundsOf, DEPTH, RULES, SEARCHES } from "./rules.ts";

/** Only for a search that does not end: each takes some seconds. */
const TIMEOUT_MS = 600_000;

/** Fewer states would mean that something that should happen does not. */
const MIN_STATES = 2_000;

const complete = SEARCHES.map(
  (bounds): Job => ({ id: JSON.stringify(bounds), rule: null, bounds }),
);
const without = RULES.map(
  ({ says, window }, rule): Job => ({ id: says, rule, bounds: boundsOf(window) }),
);

let found: ReadonlyMap<string, Found> = new Map();
beforeAll(async () => {
  found = await hunt([...complete, ...without]);
}, TIMEOUT_MS);

const foundBy = (id: string) => {
  const one = found.get(id);
  if (!one?.explored) throw new Error(`not searched: ${one?.problem ?? id}`);
  return { ...one.explored, played: one.played };
};

describe(`every order of ${DEPTH} moves`, () => {
  test.each(complete.map(({ id }) => id))("breaks nothing with %s", (id) => {
    expect(foundBy(id)).toMatchObject({ violation: null, trace: [], depth: DEPTH });
    expect(foundBy(id).states).toBeGreaterThan(MIN_STATES);
  });

  test.each(RULES)("breaks a promise where it does not hold that $says", ({ says, breaks }) => {
    expect(foundBy(says)).toMatchObject({ violation: breaks, played: breaks });
  });
});
