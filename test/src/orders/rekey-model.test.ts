/**
 * The model of the boot slots' seed and of changing the secret (protocol/models/rekey.m), searched
 * to its end: with all rules nothing breaks; without any one of them there is a trace, in which the
 * code does what it promises.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Checked, checkAll, missingPrograms } from "./murphi.ts";
import { Replay } from "./rekey-replay.ts";

/** Only for a run that does not end: all of them take some seconds of each core. */
const TIMEOUT_MS = 600_000;
const MIN_STATES = 50_000;

const SEED = "the medium holds no seed that a start was made from";
const TWICE = "no start is made twice";
const STARTS = "a device can start";
const LOCKED_OUT = "the keyring has the device's secret";
const OLD = "a dropped secret opens nothing";
const TRIAL = "no trial outlives a second start";

/** Each rule's constant, what it says, and the invariant that breaks without it. */
const RULES: readonly (readonly [constant: string, says: string, breaks: string])[] = [
  ["REPLACE", "the seed is replaced on the medium before it is used", SEED],
  ["BOTH", "it is replaced in both slots", SEED],
  ["READ_BACK", "what was written is read back, or there is no start", SEED],
  ["FREE_SLOT", "the slot that was not read is written first", STARTS],
  ["RAISE", "accepting a rekey raises the count", TWICE],
  ["KEPT_FIRST", "the keyring holds the new secret before the call", LOCKED_OUT],
  ["OLD_KEPT", "it keeps the old one until the new one was answered", LOCKED_OUT],
  ["EXPIRES", "the call carries expires", LOCKED_OUT],
  ["LATE", "the new one is given up only after 15 minutes", LOCKED_OUT],
  ["DURABLE", "a confirmation is on the medium before its answer", LOCKED_OUT],
  ["ERASE", "a confirmation erases the old secret", OLD],
  ["SECOND", "a trial ends at the second start", TRIAL],
];

const missing = missingPrograms();
const whySkipped = missing.length > 0 ? ` (requires ${missing.join(" and ")})` : "";

describe.skipIf(missing.length > 0)(`the model of seeds and rekey${whySkipped}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-rekey-model-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  let checked: ReadonlyMap<string, Checked> = new Map();

  beforeAll(async () => {
    checked = await checkAll(folder, "rekey.m", [
      { id: "all", constants: {} },
      ...RULES.map(([constant]) => ({ id: constant, constants: { [constant]: "false" } })),
    ]);
  }, TIMEOUT_MS);

  test("finds nothing in all of its states", () => {
    const run = checked.get("all");
    expect(run).toMatchObject({ failed: null, steps: [] });
    expect(run?.states).toBeGreaterThan(MIN_STATES);
  });

  test.each(RULES)("%s: has a trace where it does not hold that %s", (constant, _says, breaks) => {
    const run = checked.get(constant);
    expect(run?.failed).toBe(breaks);
    expect(run?.steps.length).toBeGreaterThan(0);
  });

  test.each(RULES)("%s: the code keeps its promises in that trace: %s", (constant) => {
    expect(new Replay(checked.get(constant)?.steps ?? []).broken).toEqual([]);
  });
});
