/**
 * How contenders are compared on a machine whose speed wanders by a quarter: all are up at once and
 * take turns in short slices, the order is reversed each cycle, each is drained before the next
 * begins, and what counts is the ratio within a cycle, as the median over all cycles. The yardstick
 * takes part twice; a run in which it does not equal itself is void.
 */

/** Runs one slice of a contender; resolves with what one unit of work cost (microseconds). */
export type Slice = () => Promise<number>;

export interface Entry {
  name: string;
  slice: Slice;
}

export interface Standing {
  name: string;
  /** Cost against the first entry's in the same cycle; the median over cycles. */
  ratio: number;
  /** The median cost of one unit, in microseconds. Wanders with the machine; the ratio does not. */
  us: number;
}

/** A first entry that reads outside of this against its own twin voids the run. */
const TWIN_LEAST = 0.93;
const TWIN_MOST = 1.07;

/** @param entries the yardstick, its twin, and who is compared with them */
export async function interleave(
  entries: readonly Entry[],
  cycles: number,
): Promise<{ standings: Standing[]; valid: boolean }> {
  const costs = entries.map(() => [] as number[]);
  // One cycle to warm up, not counted.
  for (let cycle = -1; cycle < cycles; cycle++) {
    const order = entries.map((_, i) => i);
    if (cycle % 2 !== 0) order.reverse();
    for (const i of order) {
      const cost = await (entries[i] as Entry).slice();
      if (cycle >= 0) costs[i]?.push(cost);
    }
  }
  const yardstick = costs[0] as number[];
  const standings = entries.map(({ name }, i) => {
    const own = costs[i] as number[];
    const ratios = own.map((cost, cycle) => cost / (yardstick[cycle] as number));
    return { name, ratio: median(ratios), us: median(own) };
  });
  const twin = standings[1]?.ratio ?? 1;
  return { standings, valid: twin >= TWIN_LEAST && twin <= TWIN_MOST };
}

/** The middle value; of an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const upper = sorted[middle] ?? Number.NaN;
  return sorted.length % 2 === 1 ? upper : ((sorted[middle - 1] ?? Number.NaN) + upper) / 2;
}
