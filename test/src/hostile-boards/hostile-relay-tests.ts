/** The malicious relay's attacks, one at a time and at random, on boards of one kind. */
import type { Version } from "@blindrelay/protocol/crypto";
import { afterEach, expect, it } from "vitest";
import { type MoveName, type Played, play } from "../adversary/moves.ts";
import type { MakeHardware } from "./hardware.ts";
import {
  attacks as allAttacks,
  attackHistory,
  muddledHistory,
  randomHistory,
} from "./histories.ts";
import { HostileStage } from "./hostile-stage.ts";

export interface HostileRelayOptions {
  /** Called when the first test begins. */
  makeHardware(): MakeHardware;
  readonly seeds: readonly number[];
  readonly movesAtRandom: number;
  /** Only these, and not every invalid message, where an engine is slow; absent: all. */
  readonly attacks?: readonly MoveName[];
  /** Packet versions of its two boards; absent: "1" and "2". */
  readonly versions?: readonly [Version, Version];
}

export const hostileRelayTests = ({
  makeHardware,
  seeds,
  movesAtRandom,
  attacks,
  versions,
}: HostileRelayOptions): void => {
  let stage: HostileStage;
  afterEach(() => stage?.end());

  const begin = (seed: number): HostileStage => {
    stage = new HostileStage(makeHardware(), seed, versions);
    return stage;
  };
  const stand = (history: readonly Played[]): void => {
    play(stage, history);
    stage.mustRecover();
    expect(stage.violations).toEqual([]);
  };

  it("answer every call while it is honest", () => {
    const { people, devices } = begin(1);
    const calls = people.flatMap((person) =>
      devices.map((device) => person.call(device, "slow", false, 30_000)),
    );
    stage.behave(10_000);
    expect(calls.map((call) => call.outcome?.ok)).toEqual(calls.map(() => true));
    stand([]);
  });

  it.each(attacks ?? allAttacks)("stand %s", (name) => {
    begin(7);
    stand(attackHistory(name));
  });

  it.skipIf(attacks !== undefined)("survive every invalid message", () => {
    begin(9);
    stand(muddledHistory());
  });

  it.each(seeds)("survive whatever it does at random, seed %i", (seed) => {
    begin(seed);
    stand(randomHistory(seed, movesAtRandom));
  });
};
