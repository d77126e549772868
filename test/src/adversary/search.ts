/**
 * The seeded random search: histories of moves, each in a new world, judged by the oracles after
 * every move and, at the end, by whether the world recovers. fast-check shrinks a history that
 * fails; it can be replayed from its seed and path, or from the printed list of moves.
 */
import fc from "fast-check";
import type { Build } from "./build.ts";
import { MOVES, type MoveName, type Played, play } from "./moves.ts";
import { World } from "./world.ts";

export interface SearchOptions {
  readonly seed: number;
  readonly runs: number;
  readonly maxMoves: number;
  /** Moves of interest, played more often. */
  readonly rather?: readonly MoveName[];
  /** Only reports whether there is a finding. */
  readonly quick?: boolean;
  /** fast-check's own path, printed with a failure. */
  readonly path?: string;
}

export interface Found {
  readonly runs: number;
  /** null: nothing was found. */
  readonly failure: {
    readonly worldSeed: number;
    readonly history: readonly Played[];
    readonly violations: readonly string[];
    readonly seed: number;
    readonly path: string;
  } | null;
}

const RATHER = 8;

const histories = (options: SearchOptions) => {
  const names = (Object.keys(MOVES) as MoveName[]).map((name) => ({
    arbitrary: fc.constant(name),
    weight: MOVES[name].weight * (options.rather?.includes(name) ? RATHER : 1),
  }));
  const number = fc.nat(0xffff);
  return fc.record({
    worldSeed: fc.nat(99),
    history: fc.array(fc.tuple(fc.oneof(...names), number, number, number), {
      maxLength: options.maxMoves,
      size: "max",
    }),
  });
};

/** Plays one history; returns the violation, if any. */
export const violationsOf = (
  build: Build,
  worldSeed: number,
  history: readonly Played[],
): readonly string[] => {
  const world = new World(build, worldSeed);
  play(world, history);
  if (world.violations.length === 0) world.attempt(() => world.mustRecover());
  return world.violations;
};

export const search = (build: Build, options: SearchOptions): Found => {
  const result = fc.check(
    fc.property(histories(options), ({ worldSeed, history }) => {
      const violations = violationsOf(build, worldSeed, history);
      if (violations.length > 0) throw new Error(violations.join("\n"));
    }),
    {
      seed: options.seed,
      numRuns: options.runs,
      endOnFailure: options.quick === true,
      ...(options.path === undefined ? {} : { path: options.path }),
    },
  );
  if (!result.failed || result.counterexample === null)
    return { runs: result.numRuns, failure: null };
  const [{ worldSeed, history }] = result.counterexample;
  return {
    runs: result.numRuns,
    failure: {
      worldSeed,
      history,
      violations: violationsOf(build, worldSeed, history),
      seed: result.seed,
      path: result.counterexamplePath ?? "",
    },
  };
};
