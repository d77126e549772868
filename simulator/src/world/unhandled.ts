/** Promises that device programs leave rejected. */
import { setImmediate } from "node:timers/promises";
import { describeError, type LoadedProgram } from "./program.ts";

/**
 * Tells of promises of programs that nobody handles, which would end this process and with it every
 * device's. The result stops it, once Node has told of the last one.
 */
export function onUnhandled(
  programs: LoadedProgram[],
  tell: (text: string) => void,
): () => Promise<void> {
  const asynchronous = programs.filter(({ isAsync }) => isAsync);
  const unhandled = (reason: unknown): void => {
    const texts = asynchronous.map((program) => describeError(reason, program));
    // The longest also names a place.
    const [text] = texts.toSorted((a, b) => b.length - a.length);
    if (text === undefined) throw reason;
    tell(`the program left a promise rejected: ${text}`);
  };
  process.on("unhandledRejection", unhandled);
  return async () => {
    await setImmediate();
    process.off("unhandledRejection", unhandled);
  };
}
