import { execFile } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { Stream } from "../base/random-streams.ts";
import { isValid } from "../scenario/load.ts";
import { Drawing, drawScenario } from "./draw.ts";
import { bucketOf, readKnown, writeFinding } from "./findings.ts";

const TIMEOUT_MS = 600_000;
const planted = (name: string): string => join(import.meta.dirname, "../testing/planted", name);

const inFolder = async (does: (folder: string) => Promise<void> | void): Promise<void> => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
  try {
    await does(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
};

test("what is drawn or changed can be run, and is the same for the same seed", () => {
  for (let seed = 1; seed <= 40; seed++) {
    const scenario = drawScenario(seed);
    expect(isValid(scenario, "."), `${seed}`).toBe(true);
    expect(drawScenario(seed)).toEqual(scenario);
    const mutant = new Drawing(new Stream(`mutant ${seed}`)).mutant(scenario);
    expect(isValid(mutant, "."), `mutant ${seed}`).toBe(true);
  }
});

test("one bug is one bucket, whichever device shows it", () => {
  const one = { oracle: "told", detail: "c0/1#12 was not told that g1-00001 is offline" };
  const other = { oracle: "told", detail: "streams-1#2 was not told that g0-00003 is offline" };
  expect(bucketOf(one)).toBe(bucketOf(other));
  expect(bucketOf({ ...one, oracle: "presence" })).not.toBe(bucketOf(one));
});

test("known findings are read from a file, and mistakes in it are told", () =>
  inFolder((folder) => {
    const file = join(folder, "known.yaml");
    const detail = "c0/1#12 was not told that g1-00001 is offline";
    writeFileSync(file, `- oracle: told\n  detail: "${detail}"\n`);
    expect([...readKnown(file)]).toEqual([bucketOf({ oracle: "told", detail })]);
    writeFileSync(file, "- told\n");
    expect(() => readKnown(file)).toThrow("each entry has an oracle and a detail");
  }));

test(
  "the search finds a planted bug, as a scenario that run breaks with",
  { timeout: TIMEOUT_MS },
  () =>
    inFolder(async (folder) => {
      const env = {
        ...process.env,
        BLINDRELAY_TEST_RECORDS: undefined,
        PLANTED: "offline never announced",
      };
      const node = (...args: string[]) =>
        promisify(execFile)(process.execPath, ["--import", planted("preload.ts"), ...args], {
          env,
        });
      const { stdout } = await node(planted("seek.ts"), "1", "--small");
      const finding = JSON.parse(stdout);
      expect(finding.oracle).toBe("told");
      const file = await writeFinding(folder, finding, ".");
      const run = node(
        join(import.meta.dirname, "../bin.ts"),
        "run",
        file,
        "--json",
        "--no-shrink",
      );
      const { code, stdout: out } = await run.then(
        () => ({ code: 0, stdout: "" }),
        (error) => error,
      );
      expect(code).toBe(1);
      expect(JSON.parse(out)).toMatchObject({ ok: false, seed: finding.seed, crypto: "real" });
    }),
);
