/** Reads the report of an earlier run. */
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeText, parseJson } from "@blindrelay/protocol/parse-json";
import { MAX_SEED, MAX_SEEDS } from "../scenario/limits.ts";
import type { Report } from "./report.ts";

const LISTS = [
  "thresholds",
  "kinds",
  "failures",
  "phases",
  "series",
  "outliers",
  "oracles",
  "faults",
  "dropped",
] as const;
const OBJECTS = [
  "scenario",
  "programs",
  "agents",
  "calls",
  "relay",
  "simulator",
  "histogram",
  "heat",
  "machine",
] as const;

const isSeed = (one: unknown): boolean =>
  Number.isInteger(one) && (one as number) >= 0 && (one as number) <= MAX_SEED;

/** `path`: a report.json, or its folder. Throws a Failure. */
export function readReport(path: string): Report {
  const file = extname(path) === ".json" ? path : join(path, "report.json");
  try {
    const report = parseJson(decodeText(readFileSync(file))) as Report;
    const isWhole =
      LISTS.every((name) => Array.isArray(report[name])) &&
      OBJECTS.every((name) => typeof report[name] === "object" && report[name] !== null);
    if (!isWhole || typeof report.scenario.name !== "string" || typeof report.trace !== "string") {
      throw new Error("it is not a report of blindrelay-sim run");
    }
    const [from = 0, to = from] = report.seeds ?? [];
    if (![report.seed, from, to].every(isSeed) || to < from || to - from >= MAX_SEEDS) {
      throw new Error("its seeds are not those of a run");
    }
    return report;
  } catch (error) {
    throw new Failure("usage", `${file}: ${(error as Error).message}`);
  }
}
