/**
 * A list of devices to make: CSV (RFC 4180) with the header `name,id,labels`. `id` may be empty;
 * `labels` are `key=value`, joined by `;`.
 */
import { basename } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { AgentCreate } from "@blindrelay/protocol/schema/rest";
import { CsvError, parse } from "csv-parse/sync";
import { Errors } from "typebox/schema";
import { readTextFile } from "../base/text-file.ts";
import { checkAgentId } from "../config/settings.ts";
import { readLabel } from "./labels.ts";

export interface ListedDevice {
  /** In the file, from 1. */
  readonly line: number;
  readonly name: string;
  /** Null: one is made from the name. */
  readonly id: string | null;
  readonly labels: Readonly<Record<string, string>>;
}

const HEADER = "name,id,labels";

interface CsvRow {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

const readRow = ([name = "", id = "", labels = ""]: readonly string[]): Omit<
  ListedDevice,
  "line"
> => {
  const read = labels.split(";").map((label) => label.trim());
  const pairs = read.filter((label) => label !== "").map(readLabel);
  const set = Object.fromEntries(pairs);
  const twice = pairs.find(([key, value]) => set[key] !== value);
  if (twice !== undefined) throw new Failure("usage", `the label ${twice[0]} stands there twice`);
  const proposed = id === "" ? {} : { agent_id: checkAgentId(id) };
  const [, [problem]] = Errors(AgentCreate, { name, labels: set, ...proposed });
  if (problem !== undefined) {
    const what = problem.instancePath.slice(1).replaceAll("/", ".") || "the line";
    throw new Failure("usage", `${what} ${problem.message}`);
  }
  return { name, id: id === "" ? null : id, labels: set };
};

/** Throws a Failure (usage) with `FILE:LINE` for the first line that is not right. */
export const readDeviceList = (path: string): readonly ListedDevice[] => {
  const file = basename(path);
  const wrong = (line: number, what: string, cause?: unknown): Failure =>
    new Failure("usage", `${file}:${line}: ${what}; nothing was made`, cause);
  let rows: CsvRow[];
  try {
    const options = { bom: true, info: true, skip_empty_lines: true, trim: true } as const;
    rows = parse(readTextFile(path, "the list"), options) as unknown as CsvRow[];
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw wrong(Number(error.lines ?? 1), error.message, error);
  }
  const [header, ...devices] = rows;
  if (header?.record.join(",").toLowerCase() !== HEADER) {
    throw wrong(1, `the first line must be ${HEADER}, with commas`);
  }
  const lineOf = new Map<string, number>();
  const listed = devices.map(({ record, info }): ListedDevice => {
    const line = info.lines;
    try {
      const device = readRow(record);
      // The id that is made from a name is one for each name.
      const known = device.id === null ? `the name ${device.name}` : `the id ${device.id}`;
      const before = lineOf.get(known);
      const fix = device.id === null ? ": give each an id" : "";
      if (before !== undefined) {
        throw new Failure("usage", `${known} stands in line ${before} too${fix}`);
      }
      lineOf.set(known, line);
      return { line, ...device };
    } catch (error) {
      if (error instanceof Failure) throw wrong(line, error.message, error);
      throw error;
    }
  });
  if (listed.length === 0) throw wrong(1, "no device follows the first line");
  return listed;
};
