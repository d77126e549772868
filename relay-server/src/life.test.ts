import { expect, test } from "vitest";
import { isOpen } from "./life.ts";

test("a node that rebalances sends peers elsewhere, unless no other node is ready; one that drains always does", () => {
  const states = [
    [false, false],
    [false, true],
    [true, false],
    [true, true],
  ] as const;
  const open = (hasReadyNode: boolean) =>
    states.map(([draining, rebalancing]) => isOpen({ draining, rebalancing }, () => hasReadyNode));
  expect(open(true)).toEqual([true, false, false, false]);
  expect(open(false)).toEqual([true, true, false, false]);
});
