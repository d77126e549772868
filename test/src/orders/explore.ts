/**
 * Every history up to a number of moves, breadth first, so that the first violation found has the
 * shortest trace. A state that was seen is not looked at again.
 */
import { hash } from "node:crypto";
import type { Build } from "./build.ts";
import { brokenWhenFair } from "./fair-relay.ts";
import type { Bounds, Move } from "./moves.ts";
import type { Promised } from "./promises.ts";
import { Stage, World } from "./world.ts";

export interface Explored {
  /** Null: nothing was violated. */
  readonly violation: Promised | null;
  /** The moves that lead to it. */
  readonly trace: readonly Move[];
  /** States reached; moves tried; the moves of the longest histories. */
  readonly states: number;
  readonly steps: number;
  readonly depth: number;
  readonly ms: number;
}

interface Node {
  readonly world: World;
  readonly move: Move | null;
  readonly from: Node | null;
}

const traceOf = (node: Node | null): Move[] => {
  const moves: Move[] = [];
  for (let at = node; at !== null; at = at.from) if (at.move !== null) moves.unshift(at.move);
  return moves;
};

export const explore = (build: Build, bounds: Bounds, depth: number): Explored => {
  const started = performance.now();
  const root: Node = { world: new World(new Stage(build, bounds)), move: null, from: null };
  const seen = new Set<string>();
  const isNew = (text: string): boolean => {
    const { size } = seen;
    return seen.add(hash("md5", text)).size > size;
  };
  isNew(root.world.key(root.world.sessions()));
  let states = 1;
  let level = [root];
  let steps = 0;
  let reached = 0;
  /** Broken in a fair run only, if it stays so: a trace of moves says more. */
  let fair: { violation: Promised; trace: Move[] } | null = null;
  const result = (violation: Promised | null, trace: readonly Move[]): Explored => ({
    ...{ violation, trace, states, steps, depth: reached },
    ms: Math.round(performance.now() - started),
  });
  for (let d = 1; d <= depth && level.length > 0; d++) {
    const next: Node[] = [];
    for (const from of level) {
      for (const move of from.world.moves()) {
        steps++;
        const world = from.world.copy();
        world.do(move);
        if (world.violation !== null) return result(world.violation, [...traceOf(from), move]);
        const sessions = world.sessions();
        if (!isNew(world.key(sessions))) continue;
        states++;
        // From here a fair relay delivers nothing old: equal sessions have the same future.
        const failure = isNew(sessions) ? brokenWhenFair(world) : null;
        if (failure === "served") return result(failure, [...traceOf(from), move]);
        if (failure !== null) fair ??= { violation: failure, trace: [...traceOf(from), move] };
        next.push({ world, move, from });
      }
    }
    level = next;
    reached = d;
  }
  return fair === null ? result(null, []) : result(fair.violation, fair.trace);
};
