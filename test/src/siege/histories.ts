/** What is tried in a siege, as lists of moves. */
import { seeded } from "../../../simulator/src/seeded.ts";
import { MOVES, type MoveName, type Played } from "../adversary/moves.ts";

const names = Object.keys(MOVES) as MoveName[];
/** What people and an honest relay do is in every history already, and a lie or presence reaches people only. */
const HARMLESS = "call listen emit moment while flow behave step lie presence".split(" ");
export const attacks = names.filter((name) => !HARMLESS.includes(name));

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
