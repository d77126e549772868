/** The malicious relay's attacks, one at a time and at random, on boards of one kind. */
import { afterEach, expect, it } from "vitest";
import { seeded } from "../../../simulator/src/seeded.ts";
import { MOVES, type MoveName, type Played, play } from "../adversary/moves.ts";
import type { MakeHardware } from "./hardware.ts";
import { Siege } from "./siege.ts";

const names = Object.keys(MOVES) as MoveName[];
/** What people and an honest relay do is in every history already, and a lie or presence reaches people only. */
const HARMLESS = "call listen emit moment while flow behave step lie presence".split(" ");
const attacks = names.filter((name) => !HARMLESS.includes(name));

export interface SiegeOptions {
  /** Called when the first test begins. */
  makeHardware(): MakeHardware;
  readonly seeds: readonly number[];
  readonly movesAtRandom: number;
}

/** Moves in the proportions of their weights. */
export const randomHistory = (seed: number, length: number): Played[] => {
  const draw = seeded(`siege ${seed}`);
  const urn = names.flatMap((name) => new Array<MoveName>(MOVES[name].weight).fill(name));
  return Array.from(
    { length },
    (): Played => [urn[draw(urn.length)] as MoveName, draw(1000), draw(1000), draw(1000)],
  );
};

/** People call and listen, then an attack is tried a few times, again and again. */
export const attackHistory = (name: MoveName): Played[] => {
  const draw = seeded(name);
  const history: Played[] = [];
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 4; i++) history.push(["call", draw(1000), draw(1000), draw(1000)]);
    history.push(["listen", draw(1000), draw(1000), 1], ["flow", 0, 0, 0], ["emit", round, 0, 0]);
    for (let i = 0; i < 4; i++) history.push([name, draw(1000), draw(1000), draw(1000)]);
    history.push(["behave", draw(1000), 0, 0]);
  }
  return history;
};

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

  it.each(seeds)("stand whatever it does at random, seed %i", (seed) => {
    begin(seed);
    stand(randomHistory(seed, movesAtRandom));
  });
};
