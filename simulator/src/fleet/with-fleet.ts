/** Plays a test with a fleet, once or with each of many seeds. */
import { type FleetOptions, VirtualFleet } from "./fleet.ts";

/** The first and the last one, both included, such as `"1..50"`. */
export type Seeds = `${number}..${number}`;

export interface PlayOptions extends FleetOptions {
  /** What paths of programs are relative to. Default: the current folder. */
  folder?: string;
  /** Plays the test with each of these, and a new fleet; instead of `seed`. */
  seeds?: Seeds;
}

const MAX_SEEDS = 10_000;

/**
 * Plays a test with a fleet whose devices are online. Rejects with what the test throws or an
 * oracle reports; with `seeds`, at the first seed that fails, which the message names.
 *
 * @example
 * test("a lease has one holder", () =>
 *   withFleet({ devices, seeds: "1..50", clients: 2 }, async ({ clients, clock, devices }) => {
 *     …
 *   }));
 */
export async function withFleet(
  { folder = process.cwd(), seeds, ...options }: PlayOptions,
  play: (fleet: VirtualFleet) => Promise<void>,
): Promise<void> {
  if (seeds === undefined) return playOnce(options, folder, play);
  const [first, last] = seeds.split("..").map(Number) as [number, number];
  if (!(Number.isInteger(first) && last >= first && last - first < MAX_SEEDS)) {
    throw new RangeError(`seeds: such as "1..50", at most ${MAX_SEEDS}, not "${seeds}"`);
  }
  for (let seed = first; seed <= last; seed++) {
    try {
      await playOnce({ ...options, seed }, folder, play);
    } catch (error) {
      if (error instanceof Error) error.message = `seed ${seed}: ${error.message}`;
      throw error;
    }
  }
}

async function playOnce(
  options: FleetOptions,
  folder: string,
  play: (fleet: VirtualFleet) => Promise<void>,
): Promise<void> {
  const fleet = new VirtualFleet(options, folder);
  try {
    await fleet.start();
    await play(fleet);
  } catch (error) {
    fleet.abandon();
    throw error;
  }
  fleet.stop();
}
