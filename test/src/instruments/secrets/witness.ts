/**
 * Records the output of this process and the secrets that it created. A process that a test spawned
 * writes both to files in a folder (../child-environment.ts), immediately, because it may be killed
 * at any moment; the test's own process keeps them here.
 */
import fs, { appendFileSync, openSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";

export interface Witness {
  said: string[];
  readonly secrets: Set<string>;
  /** The folder of a spawned process; null in the test's own. */
  readonly folder: string | null;
  listening: boolean;
  /** Set while a secret is shown on purpose (shown-secret.ts). */
  deaf: boolean;
}

const WITNESS = Symbol.for("blindrelay.secretsWitness");
const home = globalThis as { [WITNESS]?: Witness };
const fresh = (folder: string | null): Witness => ({
  said: [],
  secrets: new Set(),
  folder,
  listening: false,
  deaf: false,
});

/** The one witness of this process, however often this module is loaded. */
export const processWitness = (): Witness => {
  home[WITNESS] ??= fresh(null);
  return home[WITNESS];
};

/** For a spawned process. */
export const witnessInto = (folder: string): void => {
  home[WITNESS] = fresh(folder);
};

/** Records output. */
export const noteSaid = (text: string): void => {
  const { said, folder, deaf } = processWitness();
  if (deaf) return;
  if (folder === null) said.push(text);
  else append(folder, "said", text);
};

/** Runs something whose output is not recorded. */
export const unheard = (act: () => void): void => {
  const witness = processWitness();
  witness.deaf = true;
  try {
    act();
  } finally {
    witness.deaf = false;
  }
};

/** Registers a secret that was created. */
export const noteSecret = (secret: string): void => {
  const { secrets, folder } = processWitness();
  if (secrets.has(secret)) return;
  secrets.add(secret);
  if (folder !== null) append(folder, "made", `${JSON.stringify(secret)}\n`);
};

/** Kept open: a process may run out of descriptors, and log that. */
const files = new Map<string, number>();

/** The test may have cleared its folder while one of its processes was still ending. */
const append = (folder: string, what: string, text: string): void => {
  try {
    const path = join(folder, `${process.pid}.${what}`);
    const file = files.get(path) ?? openSync(path, "a", 0o600);
    files.set(path, file);
    appendFileSync(file, text);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
};

const textOf = (chunk: unknown): string =>
  typeof chunk === "string" ? chunk : Buffer.from(chunk as Uint8Array).toString("utf8");

/**
 * Records standard error, however it is written, and the console of this process. Standard output
 * is for answers.
 */
export const listen = (): void => {
  if (processWitness().listening) return;
  processWitness().listening = true;
  const write = process.stderr.write;
  process.stderr.write = function (this: NodeJS.WriteStream, ...parts: unknown[]) {
    noteSaid(textOf(parts[0]));
    return Reflect.apply(write, this, parts);
  } as typeof process.stderr.write;
  for (const level of ["error", "warn"] as const) {
    const plain = console[level];
    console[level] = (...parts: unknown[]) => {
      noteSaid(`${parts.map(String).join(" ")}\n`);
      plain(...parts);
    };
  }
  const module = fs as unknown as Record<string, (...parts: unknown[]) => unknown>;
  for (const name of ["write", "writeSync"]) {
    const plain = module[name] as (...parts: unknown[]) => unknown;
    const noting = (...parts: unknown[]) => {
      if (parts[0] === 2) noteSaid(textOf(parts[1]));
      return plain(...parts);
    };
    module[name] = Object.defineProperties(noting, Object.getOwnPropertyDescriptors(plain));
  }
  syncBuiltinESMExports();
  const noteError = (error: Error) => noteSaid(`${error?.stack ?? error}\n`);
  process.on("uncaughtExceptionMonitor", noteError);
  process.on("warning", noteError);
};
