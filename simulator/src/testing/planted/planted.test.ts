import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import type { Report } from "../../report/report.ts";
import { FOR_THE_SEARCH, PLANTS } from "./plants.ts";

/** A search runs its scenario up to thirty times. */
const TIMEOUT_MS = 600_000;

const file = (name: string): string => join(import.meta.dirname, name);

/**
 * Its process is not recorded (test/src/instruments): each try to find a smaller scenario repeats
 * the same secrets and random numbers with different calls. The world's own oracle checks them.
 */
const envOf = (planted: string): NodeJS.ProcessEnv => ({
  ...process.env,
  BLINDRELAY_TEST_RECORDS: undefined,
  PLANTED: planted,
});

/** Runs hunt.ts with the planted bug. */
const hunt = async (name: string): Promise<{ codes: number[]; report: Report }> => {
  const { scenario, seed, devices } = PLANTS[name] as (typeof PLANTS)[string];
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
  try {
    const args = ["--import", file("preload.ts"), file("hunt.ts"), scenario, String(seed), folder];
    const { stdout } = await promisify(execFile)(
      process.execPath,
      devices === null ? [...args, "--no-shrink"] : args,
      { env: envOf(name) },
    );
    return {
      codes: JSON.parse(stdout.trimEnd().split("\n").at(-1) as string),
      report: JSON.parse(readFileSync(join(folder, "report.json"), "utf8")),
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test.each(Object.entries(PLANTS))(
  "the library finds this bug: %s",
  { timeout: TIMEOUT_MS },
  async (name, plant) => {
    const { codes, report } = await hunt(name);
    const objecting = report.oracles.filter(({ ok }) => !ok).map((oracle) => oracle.name);
    expect(objecting).toEqual([plant.oracle]);
    // The run can be replayed, and so can the smallest scenario.
    expect(codes).toEqual(plant.devices === null ? [0] : [0, 0]);
    if (plant.devices === null) return;
    const left = report.shrunk?.scenario.devices.reduce((sum, { count }) => sum + count, 0);
    expect(left).toBeLessThanOrEqual(plant.devices);
  },
);

// CI seeks only one of them.
test.each(Object.entries(FOR_THE_SEARCH))("what the search seeks fits its file: %s", (_, bug) => {
  const text = readFileSync(join(import.meta.dirname, "../../../..", bug.file), "utf8");
  for (const { from } of bug.edits) expect(text.split(from)).toHaveLength(2);
});

test("a bug that no longer fits its file is reported as such, not as missed", async () => {
  const args = ["--import", file("preload.ts"), "--eval", "0"];
  const env = envOf("drain without spread");
  await expect(promisify(execFile)(process.execPath, args, { env })).rejects.toThrow(
    /drain\.ts was not loaded: "drain without spread" was not planted/,
  );
});
