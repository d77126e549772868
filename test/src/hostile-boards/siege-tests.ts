/** The malicious relay's attacks, one at a time and at random, on boards of one kind. */
import { afterEach, expect, it } from "vitest";
import { type Played, play } from "../adversary/moves.ts";
import type { MakeHardware } from "./hardware.ts";
import { attackHistory, attacks, muddledHistory, randomHistory } from "./histories.ts";
import { Siege } from "./siege.ts";

export interface SiegeOptions {
  /** Called when the first test begins. */
  makeHardware(): MakeHardware;
  readonly seeds: readonly number[];
  readonly movesAtRandom: number;
}

export const siegeTests = ({ makeHardware, seeds, movesAtRandom }: SiegeOptions): void => {
  let siege: Siege;
  afterEach(() => siege?.end());

  const begin = (seed: number): Siege => {
    siege = new Siege(makeHardware(), seed);
    return siege;
  };
  const stand = (history: readonly Played[]): void => {
    play(siege, history);
    siege.mustRecover();
    expect(siege.violations).toEqual([]);
  };

  it("answer every call while it is honest", () => {
    const { people, devices } = begin(1);
    const calls = people.flatMap((person) =>
      devices.map((device) => person.call(device, "slow", false, 30_000)),
    );
    siege.behave(10_000);
    expect(calls.map((call) => call.outcome?.ok)).toEqual(calls.map(() => true));
    stand([]);
  });

  it.each(attacks)("stand %s", (name) => {
    begin(7);
    stand(attackHistory(name));
  });

  it("survive every invalid message", () => {
    begin(9);
    stand(muddledHistory());
  });

  it.each(seeds)("survive whatever it does at random, seed %i", (seed) => {
    begin(seed);
    stand(randomHistory(seed, movesAtRandom));
  });
};
