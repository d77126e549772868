/**
 * Plays worlds whose device programs may do anything: one that never returns ends its world, and
 * promises that they leave rejected, which would end this process, are reported.
 */
import { setImmediate } from "node:timers/promises";
import { PowerCut } from "@blindrelay/agent-sdk/memory";
import { describeErrorOf, type LoadedProgram } from "./program.ts";
import { startWatchdog } from "./watchdog.ts";
import type { World } from "./world.ts";

export interface Guard {
  /**
   * Plays a world to its end, `breathe` as with `World.run`. Resolves with what did not return, and
   * so ended it, or with null.
   */
  play(world: World, breathe: (done: number) => boolean): Promise<string | null>;
  stop(): void;
}

/** `stuckMs`: CPU time without a return that is too much; absent: any is allowed. */
export async function startGuard(
  programs: readonly LoadedProgram[],
  stuckMs?: number,
): Promise<Guard> {
  const files = programs.map(({ file }) => file);
  const watchdog = stuckMs === undefined ? null : await startWatchdog(files, stuckMs);
  const asynchronous = programs.filter(({ isAsync }) => isAsync);
  return {
    async play(world, breathe) {
      const unhandled = (reason: unknown): void => {
        const text = describeErrorOf(asynchronous, reason);
        if (text === undefined) throw reason;
        // Its power went, and nobody is left to hear of it.
        if (reason instanceof PowerCut) return;
        world.measured.programErrors.rejected(text);
      };
      process.on("unhandledRejection", unhandled);
      try {
        const stuck = watchdog?.stuck();
        const isStuck = (): boolean => watchdog?.isStuck() === true;
        // In a task of its own: what the watchdog ends may be all that the task still had to do, or
        // one of its promises.
        const over = setImmediate()
          .then(() => world.run((done) => !isStuck() && breathe(done)))
          .then(() => (isStuck() ? stuck : world.stuck));
        return (await Promise.race([over, stuck ?? over])) ?? null;
      } finally {
        // Node reports the last rejection after the task that left it.
        await setImmediate();
        process.off("unhandledRejection", unhandled);
      }
    },
    stop: () => watchdog?.stop(),
  };
}
