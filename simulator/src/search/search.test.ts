import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Stream } from "../base/random-streams.ts";
import { isValid, loadScenario } from "../scenario/load.ts";
import type { Scenario } from "../scenario/schema.ts";
import { Drawing, drawScenario } from "./draw.ts";
import { bucketOf, readCorpus, readKnown, writeCorpus, writeFinding } from "./findings.ts";

const inFolder = async (does: (folder: string) => void | Promise<void>): Promise<void> => {
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

const PROGRAM = "export default () => {};";
const OWN: Scenario = {
  name: "own",
  duration: "1m",
  devices: [{ group: "g", count: 1, program: "p.js" }],
  faults: [{ at: "10s", kind: "device.update", program: "other.js" }],
  stubs: "pins.js",
};

test("what a search writes runs where it is written, and is read again", () =>
  inFolder(async (folder) => {
    for (const name of ["p.js", "other.js", "pins.js"]) {
      writeFileSync(join(folder, name), PROGRAM);
    }
    const [report, corpus] = [join(folder, "report"), join(folder, "corpus")];
    for (const made of [report, corpus]) mkdirSync(made);
    const finding = { oracle: "told", detail: "it was not", seed: 7, scenario: OWN };
    const file = await writeFinding(report, finding, folder);
    expect((await loadScenario(file)).scenario.stubs).toBe("../pins.js");
    await writeCorpus(corpus, OWN, folder, "1");
    const [read] = readCorpus(corpus, folder);
    expect(read?.stubs).toBe("./pins.js");
    expect(read?.devices[0]?.program).toBe("./p.js");
  }));

test("a corpus is read without what is cut short, or whose programs cannot run any more", () =>
  inFolder(async (folder) => {
    const corpus = join(folder, "corpus");
    mkdirSync(corpus);
    for (const name of ["p.js", "other.js", "pins.js"]) {
      writeFileSync(join(folder, name), PROGRAM);
    }
    await writeCorpus(corpus, OWN, folder, "1");
    await writeCorpus(corpus, { ...OWN, name: "two" }, folder, "2");
    writeFileSync(join(corpus, "3.yaml"), "name: three\ndevices: [{ group: g, coun");
    writeFileSync(join(corpus, "4.yaml"), "");
    expect(readCorpus(corpus, folder)).toHaveLength(2);
    writeFileSync(join(folder, "p.js"), "export default () => {");
    expect(readCorpus(corpus, folder)).toEqual([]);
  }));

test("known findings are read from a file, and mistakes in it are told", () =>
  inFolder((folder) => {
    const file = join(folder, "known.yaml");
    const detail = "c0/1#12 was not told that g1-00001 is offline";
    writeFileSync(file, `- oracle: told\n  detail: "${detail}"\n`);
    expect([...readKnown(file)]).toEqual([bucketOf({ oracle: "told", detail })]);
    writeFileSync(file, "- told\n");
    expect(() => readKnown(file)).toThrow("each entry has an oracle and a detail");
    writeFileSync(file, Buffer.from("\ufeff- told\n", "utf16le"));
    expect(() => readKnown(file)).toThrow("UTF-16 text; save it as UTF-8");
  }));
