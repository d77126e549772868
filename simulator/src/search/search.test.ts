import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Stream } from "../base/random-streams.ts";
import { isValid } from "../scenario/load.ts";
import { Drawing, drawScenario } from "./draw.ts";
import { bucketOf, readKnown } from "./findings.ts";

const inFolder = (does: (folder: string) => void): void => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-test-"));
  try {
    does(folder);
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
