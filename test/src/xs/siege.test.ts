/** The malicious relay against agents in the real XS engine. */
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { seeded } from "../../../simulator/src/seeded.ts";
import { MOVES, type MoveName, type Played, play } from "../adversary/moves.ts";
import type { World } from "../adversary/world.ts";
import { engine, makeScript, whySkipped, withoutEngine } from "./engine.ts";
import { Siege } from "./siege.ts";

const MOVES_AT_RANDOM = 150;
const SEEDS = [1, 2, 3];
const names = Object.keys(MOVES) as MoveName[];
/** What people and an honest relay do is in every history already, and a lie or presence reaches people only. */
const HARMLESS = "call listen emit moment while flow behave step lie presence".split(" ");
const attacks = names.filter((name) => !HARMLESS.includes(name));

describe.skipIf(withoutEngine)(`agents in XS behind a malicious relay${whySkipped}`, () => {
  let script: string;
  let siege: Siege;
  beforeAll(async () => {
    script = await makeScript();
  }, 600_000);
  afterEach(() => siege?.end());

  const begin = (seed: number): Siege => {
    siege = new Siege(engine, script, seed);
    return siege;
  };
  // The moves use what a siege and the world of Node's agents have in common.
  const asWorld = (one: Siege): World => one as unknown as World;

  it("answer every call while it is honest", () => {
    const { people, devices } = begin(1);
    const calls = people.flatMap((person) =>
      devices.map((device) => person.call(device, "slow", false, 30_000)),
    );
    siege.behave(10_000);
    expect(calls.map((call) => call.outcome?.ok)).toEqual(calls.map(() => true));
    siege.mustRecover();
    expect(siege.violations).toEqual([]);
  });

  it.each(attacks)("stand %s", (name) => {
    begin(7);
    const draw = seeded(name);
    const history: Played[] = [];
    for (let round = 0; round < 4; round++) {
      for (let i = 0; i < 4; i++) history.push(["call", draw(1000), draw(1000), draw(1000)]);
      history.push(["listen", draw(1000), draw(1000), 1], ["flow", 0, 0, 0], ["emit", round, 0, 0]);
      for (let i = 0; i < 4; i++) history.push([name, draw(1000), draw(1000), draw(1000)]);
      history.push(["behave", draw(1000), 0, 0]);
    }
    play(asWorld(siege), history);
    siege.mustRecover();
    expect(siege.violations).toEqual([]);
  });

  it.each(SEEDS)("stand whatever it does at random, seed %i", (seed) => {
    begin(seed);
    const draw = seeded(`siege ${seed}`);
    const urn = names.flatMap((name) => new Array<MoveName>(MOVES[name].weight).fill(name));
    const history = Array.from(
      { length: MOVES_AT_RANDOM },
      (): Played => [urn[draw(urn.length)] as MoveName, draw(1000), draw(1000), draw(1000)],
    );
    play(asWorld(siege), history);
    siege.mustRecover();
    expect(siege.violations).toEqual([]);
  });
});
