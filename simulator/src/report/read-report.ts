/** Reads the report of an earlier run. */
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { Failure } from "@blindrelay/protocol/command-line";
import { decodeText, parseJson } from "@blindrelay/protocol/parse-json";
import type { Report } from "./report.ts";

/** `path`: a report.json, or its folder. Throws a Failure. */
export function readReport(path: string): Report {
  const file = extname(path) === ".json" ? path : join(path, "report.json");
  try {
    const report = parseJson(decodeText(readFileSync(file))) as Report;
    if (typeof report.scenario?.name !== "string" || typeof report.trace !== "string") {
      throw new Error("it is not a report of blindrelay-sim run");
    }
    return report;
  } catch (error) {
    throw new Failure("usage", `${file}: ${(error as Error).message}`);
  }
}
