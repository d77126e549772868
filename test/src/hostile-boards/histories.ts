/** The histories of attacks, as lists of moves. */
import { Stream } from "@blindrelay/simulator/testing";
import { MOVES, type MoveName, MUDDLED, type Played } from "../adversary/moves.ts";

const names = Object.keys(MOVES) as MoveName[];
/**
 * People's and an honest relay's moves are in every history already, and a lie or presence reaches
 * people only.
 */
const HARMLESS = "call listen push emit moment while flow behave step lie presence".split(" ");
export const attacks = names.filter((name) => !HARMLESS.includes(name));

/** The factor by which requested moves are more frequent. */
const RATHER = 8;

/** Moves in proportion to their weights; those in `rather` more often. */
export const randomHistory = (
  seed: number,
  length: number,
  rather: readonly MoveName[] = [],
): Played[] => {
  const draws = new Stream(`attack ${seed}`);
  const urn = names.flatMap((name) => {
    const weight = MOVES[name].weight * (rather.includes(name) ? RATHER : 1);
    return new Array<MoveName>(weight).fill(name);
  });
  return Array.from(
    { length },
    (): Played => [
      urn[draws.below(urn.length)] as MoveName,
      draws.below(1000),
      draws.below(1000),
      draws.below(1000),
    ],
  );
};

/** People call and listen, then an attack is tried several times, repeatedly. */
export const attackHistory = (name: MoveName): Played[] => {
  const draws = new Stream(name);
  const history: Played[] = [];
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 4; i++)
      history.push(["call", draws.below(1000), draws.below(1000), draws.below(1000)]);
    history.push(
      ["listen", draws.below(1000), draws.below(1000), 1],
      ["flow", 0, 0, 0],
      ["emit", round, 0, 0],
    );
    for (let i = 0; i < 4; i++)
      history.push([name, draws.below(1000), draws.below(1000), draws.below(1000)]);
    history.push(["behave", draws.below(1000), 0, 0]);
  }
  return history;
};

/** Every invalid message, to an agent that somebody is calling. */
export const muddledHistory = (): Played[] => {
  const draws = new Stream("muddled");
  return MUDDLED.flatMap((_text, i): Played[] => [
    ["call", i, i, 0],
    ["flow", 0, 0, 0],
    ["muddle", draws.below(1000), i, 0],
    ["behave", draws.below(1000), 0, 0],
  ]);
};
