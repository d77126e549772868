/**
 * Makes sure that every process is watched, however it is started and whatever environment it gets:
 * in the tests' own processes (setup.ts) and in those that they start (register.mjs).
 */
import childProcess from "node:child_process";
import { syncBuiltinESMExports } from "node:module";
import { childEnvironment } from "./child-environment.ts";

/** Every function that starts a process. */
export const STARTERS = [
  "spawn",
  "spawnSync",
  "exec",
  "execSync",
  "execFile",
  "execFileSync",
  "fork",
] as const;

type Starter = (...given: unknown[]) => unknown;

const INSTRUMENTED = Symbol.for("blindrelay.childProcesses");
const home = globalThis as { [INSTRUMENTED]?: true };

/**
 * All of them take their options as the one object that is neither the argument list nor a
 * callback.
 */
const watched = (given: unknown[]): unknown[] =>
  given.map((value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
    const { env } = value as { env?: NodeJS.ProcessEnv };
    // Without one, it inherits this process's, which is complete.
    return env === undefined ? value : { ...value, env: childEnvironment(env) };
  });

export const watchChildProcesses = (): void => {
  if (home[INSTRUMENTED]) return;
  home[INSTRUMENTED] = true;
  const starters = childProcess as unknown as Record<string, Starter>;
  for (const name of STARTERS) {
    const start = starters[name] as Starter;
    const wrapped = (...given: unknown[]) => start(...watched(given));
    starters[name] = Object.defineProperties(wrapped, Object.getOwnPropertyDescriptors(start));
  }
  syncBuiltinESMExports();
};
