/** Runs a model of the rules (protocol/models/*.m) through rumur and the C compiler. */
import { execFile } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { REPOSITORY } from "../adversary/build.ts";

const MODELS = join(REPOSITORY, "protocol/models");
const NEEDED = ["rumur", "cc"];
/** Some seconds is usual. */
const TIMEOUT_MS = 300_000;
const MAX_OUTPUT_BYTES = 2 ** 26;

const run = promisify(execFile);

/** A rule that fired. */
export interface Step {
  readonly rule: string;
  readonly parameters: Readonly<Record<string, number>>;
}

export interface Checked {
  readonly states: number;
  /** The invariant that failed; null: none. */
  readonly failed: string | null;
  readonly steps: readonly Step[];
}

/** The programs that are not on the path. */
export const missingPrograms = (): string[] =>
  NEEDED.filter(
    (name) =>
      !(process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, name))),
  );

/** The model with these constants. Throws unless it has each of them once. */
export const withConstants = (
  text: string,
  constants: Readonly<Record<string, string>>,
): string => {
  let changed = text;
  for (const [name, value] of Object.entries(constants)) {
    const line = new RegExp(`^  ${name}: \\w+;`, "gm");
    if (changed.match(line)?.length !== 1) throw new Error(`the model has no one line ${name}`);
    changed = changed.replace(line, `  ${name}: ${value};`);
  }
  return changed;
};

const stepsIn = (xml: string): Step[] => {
  const steps: Step[] = [];
  for (const [, rule = "", inside = ""] of xml.matchAll(
    /<transition>Rule &quot;(\w+)&quot;(.*?)<\/transition>/g,
  )) {
    const parameters: Record<string, number> = {};
    for (const [, name = "", value] of inside.matchAll(/name="(\w+)">(\d+)</g)) {
      parameters[name] = Number(value);
    }
    steps.push({ rule, parameters });
  }
  return steps;
};

type Constants = Readonly<Record<string, string>>;

/** One exploration of a model. */
export interface Run {
  readonly id: string;
  readonly constants: Constants;
}

/** Explores all states in each run; by its id. `folder`: an empty one, for what is made. */
export const checkAll = async (
  folder: string,
  model: "rekey.m" | "sessions.m",
  runs: readonly Run[],
): Promise<ReadonlyMap<string, Checked>> => {
  const checked = new Map<string, Checked>();
  const waiting = [...runs];
  const work = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const own = join(folder, next.id);
      mkdirSync(own);
      checked.set(next.id, await check(own, model, next.constants));
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
  return checked;
};

const check = async (folder: string, model: string, constants: Constants): Promise<Checked> => {
  const file = (name: string) => join(folder, name);
  writeFileSync(
    file("model.m"),
    withConstants(readFileSync(join(MODELS, model), "utf8"), constants),
  );
  const options = { timeout: TIMEOUT_MS, maxBuffer: MAX_OUTPUT_BYTES };
  // One thread: several models are checked at once, and its queues then need no wide atomics.
  const translate = ["--threads", "1", "--deadlock-detection", "off"];
  translate.push("--output-format", "machine-readable");
  await run("rumur", [...translate, "--output", file("model.c"), file("model.m")], options);
  await run("cc", ["-O2", "-o", file("model"), file("model.c"), "-lpthread"], options);
  // It exits with 1 when an invariant failed.
  const { stdout } = await run(file("model"), [], options).catch((thrown) => {
    if (typeof thrown.stdout !== "string" || !thrown.stdout.includes("<summary")) throw thrown;
    return thrown as { stdout: string };
  });
  const states = /<summary states="(\d+)"/.exec(stdout)?.[1];
  if (states === undefined) throw new Error(`rumur's checker said: ${stdout.slice(-500)}`);
  const failed = /<message>(?:invariant )?&quot;(.*?)&quot; failed/.exec(stdout)?.[1] ?? null;
  if (failed === null && !stdout.includes('errors="0"')) throw new Error(stdout.slice(0, 2_000));
  return { states: Number(states), failed, steps: stepsIn(stdout) };
};
