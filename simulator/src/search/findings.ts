/** What a search found: in buckets, so that one bug is reported once, and as files that run. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeText } from "@blindrelay/protocol/parse-json";
import { parse, YAMLParseError } from "yaml";
import { checkScenario, shown } from "../scenario/load.ts";
import { ScenarioError } from "../scenario/problems.ts";
import type { Scenario } from "../scenario/schema.ts";
import { movedTo, writeScenario } from "../scenario/write.ts";
import type { LoadedProgram } from "../virtual/program.ts";
import { loadPrograms } from "../virtual/programs.ts";

export interface Finding {
  readonly oracle: string;
  readonly detail: string;
  readonly seed: number;
  /** The smallest one that breaks; its programs are relative to the search's own folder. */
  readonly scenario: Scenario;
}

const MAX_CORPUS = 500;

/** The detail without names and numbers. */
export const bucketOf = ({ oracle, detail }: Pick<Finding, "oracle" | "detail">): string =>
  `${oracle}: ${plain(detail)}`;

const plain = (detail: string): string =>
  detail
    .replace(/\b(relay-)?[A-Za-z]+[0-9]*[-/][A-Za-z0-9/-]*[0-9]+(#[0-9]+)?/g, "…")
    .replace(/[A-Za-z0-9_-]{16,}(\.[A-Za-z0-9_-]+)?/g, "…")
    .replace(/[0-9]+/g, "…")
    .slice(0, 160);

/**
 * The buckets in a file of known findings: a list of `oracle` and `detail`, as a finding has them.
 * Throws a Failure.
 */
export function readKnown(file: string): Set<string> {
  try {
    const list = (parse(decodeText(readFileSync(file))) ?? []) as unknown;
    if (!Array.isArray(list)) throw new Error("a list of { oracle, detail } is expected");
    return new Set(
      list.map((one: Partial<Finding> | null) => {
        if (typeof one?.oracle !== "string" || typeof one.detail !== "string") {
          throw new Error("each entry has an oracle and a detail, as a finding has them");
        }
        return bucketOf({ oracle: one.oracle, detail: one.detail });
      }),
    );
  } catch (error) {
    throw new Failure("usage", `--known ${file}: ${(error as Error).message}`);
  }
}

/**
 * Scenarios of earlier searches; left out are those that are no longer valid, with their programs,
 * or whose file was cut short.
 */
export function readCorpus(folder: string, own: string): Scenario[] {
  if (!existsSync(folder)) return [];
  const files = readdirSync(folder).filter((name) => name.endsWith(".yaml"));
  const programs = new Map<string, LoadedProgram>();
  return files.sort().flatMap((name) => {
    try {
      const { scenario } = checkScenario(parse(readFileSync(join(folder, name), "utf8")), folder);
      const moved = movedTo(own, scenario, folder);
      loadPrograms(moved, own, programs);
      return [moved];
    } catch (error) {
      if (isMistake(error)) return [];
      throw error;
    }
  });
}

const isMistake = (error: unknown): boolean =>
  error instanceof ScenarioError || error instanceof Failure || error instanceof YAMLParseError;

export async function writeCorpus(
  folder: string,
  scenario: Scenario,
  own: string,
  name: string,
): Promise<void> {
  if (readdirSync(folder).length >= MAX_CORPUS) return;
  await writeScenario(join(folder, `${name}.yaml`), movedTo(folder, scenario, own));
}

/** A file in `folder` that `run` breaks with. Resolves with its path. */
export async function writeFinding(
  folder: string,
  { oracle, detail, seed, scenario }: Finding,
  own: string,
): Promise<string> {
  const name = `${oracle}-${seed}`;
  let file = join(folder, `${name}.yaml`);
  for (let n = 2; existsSync(file); n++) file = join(folder, `${name}-${n}.yaml`);
  const told = {
    ...movedTo(folder, scenario, own),
    name: `found by search: ${oracle}`,
    description: detail,
    seed,
  };
  await writeScenario(file, told);
  return shown(resolve(file));
}
