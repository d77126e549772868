/** Plays a trace from the start, on new objects. */
import type { Build } from "./build.ts";
import { brokenWhenFair } from "./fair-relay.ts";
import type { Bounds, Move } from "./moves.ts";
import type { Step } from "./murphi.ts";
import type { Promised } from "./promises.ts";
import { Stage, World } from "./world.ts";

const ofMoves = (world: World, moves: Iterable<Move>): Promised | null => {
  for (const move of moves) {
    world.do(move);
    if (world.violation !== null) return world.violation;
  }
  return brokenWhenFair(world);
};

/** What it breaks, at its last move or when the relay is fair from then on. */
export const replay = (build: Build, bounds: Bounds, trace: readonly Move[]): Promised | null =>
  ofMoves(new World(new Stage(build, bounds)), trace);

/** The move of a step of the model. Its clients are numbered from 1, and so are its boots. */
const moveOf = (world: World, { rule, parameters }: Step): Move | null => {
  const { p = 0, s = 0, b = 0, e = 0 } = parameters;
  const client = p - 1;
  if (rule === "open" || rule === "call") return [rule, client];
  if (rule === "toAgent") return [rule, client, s];
  if (rule === "answer") return ["toClient", client, b, e, 0];
  if (rule === "restart" || rule === "wait") return [rule];
  const find = (kind: string) => {
    const move = world
      .moves()
      .find((one) => one[0] === kind && one[1] === client && (kind === "forget" || one[4] === s));
    if (move === undefined) throw new Error(`the code has no ${kind} of client ${client} now`);
    return move;
  };
  if (rule === "data") return find("toClient");
  if (rule === "forget") return find("forget");
  return null;
};

/** The same for a trace of the model, whose last step may be that the relay is fair. */
export const replayModel = (
  build: Build,
  bounds: Bounds,
  steps: readonly Step[],
): Promised | null => {
  const world = new World(new Stage(build, bounds));
  const moves = function* (): Generator<Move> {
    for (const step of steps) {
      const move = moveOf(world, step);
      if (move !== null) yield move;
    }
  };
  return ofMoves(world, moves());
};
