/**
 * How contenders are compared on a machine whose speed varies by a quarter: all run at once and
 * take turns in short slices, the order is reversed each cycle, each is drained before the next
 * begins, and the result is the ratio within a cycle, as the median over all cycles. The yardstick
 * takes part twice; a run in which its two results differ is void.
 */

/** The cost of one slice of a contender. */
export interface Slice {
  /** Microseconds of processor time for one unit of work. */
  readonly us: number;
  /** Share of the slice's time that the load generator's processor was busy; 0 without one. */
  readonly generator: number;
  /** The same for the contender's own processor; above 1 if it uses several. */
  readonly server: number;
}

export interface Entry {
  readonly name: string;
  readonly slice: () => Promise<Slice>;
  /** Whether a bottleneck here voids the run: true for the yardstick and the subject. */
  readonly matters: boolean;
}

interface Standing {
  readonly name: string;
  /** Cost relative to the first entry in the same cycle: the median over cycles, and quartiles. */
  readonly ratio: number;
  readonly lower: number;
  readonly upper: number;
  /** The median cost of one unit in microseconds, which varies with the machine. */
  readonly us: number;
  /** Medians of the shares. */
  readonly generator: number;
  readonly server: number;
}

export interface Comparison {
  readonly standings: readonly Standing[];
  /** Why the run is void; empty if it is valid. */
  readonly voids: readonly string[];
}

export interface Pace {
  /** Counted cycles. */
  readonly cycles: number;
  /** The most slices of one contender's warm-up. */
  readonly warmUp: number;
}

/** The run is void if the first entry's ratio to its own twin is outside this range. */
const TWIN_LEAST = 0.93;
const TWIN_MOST = 1.07;
/** Above this, the generator is measured instead of the contender. */
const GENERATOR_MOST = 0.9;
/** A contender is warm when the medians of two successive groups differ by less than this. */
const STILL_SLICES = 4;
const STILL = 0.05;

/** @param entries the yardstick, its twin, and the contenders to compare with them */
export async function interleave(entries: readonly Entry[], pace: Pace): Promise<Comparison> {
  for (const entry of entries) await warmUp(entry, pace.warmUp);
  const slices = entries.map(() => [] as Slice[]);
  for (let cycle = 0; cycle < pace.cycles; cycle++) {
    const order = entries.map((_, i) => i);
    if (cycle % 2 !== 0) order.reverse();
    for (const i of order) slices[i]?.push(await (entries[i] as Entry).slice());
  }
  const yardstick = slices[0] as Slice[];
  const standings = entries.map(({ name }, i) => {
    const own = slices[i] as Slice[];
    const ratios = own.map(({ us }, cycle) => us / (yardstick[cycle] as Slice).us);
    return {
      name,
      ratio: median(ratios),
      lower: quantile(ratios, 0.25),
      upper: quantile(ratios, 0.75),
      us: median(own.map(({ us }) => us)),
      generator: median(own.map(({ generator }) => generator)),
      server: median(own.map(({ server }) => server)),
    };
  });
  return { standings, voids: reasons(entries, standings) };
}

function reasons(entries: readonly Entry[], standings: readonly Standing[]): string[] {
  const twin = standings[1]?.ratio ?? 1;
  const found = entries
    .map((entry, i) => ({ entry, standing: standings[i] as Standing }))
    .filter(({ entry, standing }) => entry.matters && isBound(standing))
    .map(
      ({ standing: { name, generator } }) =>
        `the load generator is the bottleneck: ${percent(generator)} of its processor under ${name}`,
    );
  if (!(twin >= TWIN_LEAST && twin <= TWIN_MOST)) {
    found.unshift(
      `the yardstick measured twice differs from itself (${twin.toFixed(2)}): the machine is too busy`,
    );
  }
  return found;
}

/** Whether the generator was the bottleneck, so that the contender may be faster. */
export function isBound({ generator }: Standing): boolean {
  return generator > GENERATOR_MOST;
}

/** Uncounted slices, until the cost is stable. */
async function warmUp({ slice }: Entry, most: number): Promise<void> {
  const costs: number[] = [];
  while (costs.length < most) {
    costs.push((await slice()).us);
    if (costs.length < 2 * STILL_SLICES) continue;
    const before = median(costs.slice(-2 * STILL_SLICES, -STILL_SLICES));
    if (Math.abs(median(costs.slice(-STILL_SLICES)) / before - 1) < STILL) return;
  }
}

/** The middle value; for an even number of values, the mean of the two in the middle. */
export function median(values: readonly number[]): number {
  return quantile(values, 0.5);
}

/** By linear interpolation between the two neighbouring values. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  const place = (sorted.length - 1) * share;
  const below = sorted[Math.floor(place)] ?? Number.NaN;
  const above = sorted[Math.ceil(place)] ?? Number.NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}
