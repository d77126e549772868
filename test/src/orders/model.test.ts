/**
 * The model of the rules, searched to its end: with all rules nothing breaks; without any one of
 * them there is a trace, and that trace breaks the real classes, too, where the rule is left out of
 * them, and does not where it is kept.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Found, Job } from "./hunt.ts";
import { hunt } from "./hunters.ts";
import { type Checked, checkAll, missingPrograms, withConstants } from "./murphi.ts";
import type { Promised } from "./promises.ts";
import { boundsOf, RULES } from "./rules.ts";

/** Only for a run that does not end: all of them take half a minute of each core. */
const TIMEOUT_MS = 900_000;
const MIN_STATES = 100_000;
const WINDOWS = [1, 2];

/** What the invariants are called. */
const INVARIANTS: { readonly [promised in Exclude<Promised, "takenTwice">]: string } = {
  nonce: "no key and nonce seal twice",
  twice: "no packet is accepted twice",
  late: "no call runs after its expires",
  derivedAgain: "no stored A is derived again",
  tooMany: "an epoch stores no more than W while it is current",
  served: "every client is served",
};

const missing = missingPrograms();
const whySkipped = missing.length > 0 ? ` (requires ${missing.join(" and ")})` : "";

const modelled = RULES.flatMap((rule, index) =>
  rule.constant === null ? [] : [{ ...rule, constant: rule.constant, index }],
);

describe.skipIf(missing.length > 0)(`the model of the rules${whySkipped}`, () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-model-"));
  afterAll(() => rmSync(folder, { recursive: true }));
  let checked: ReadonlyMap<string, Checked> = new Map();
  let found: ReadonlyMap<string, Found> = new Map();

  beforeAll(async () => {
    const runs = [
      ...WINDOWS.map((W) => ({ id: `W ${W}`, constants: { W: String(W) } })),
      ...modelled.map(({ constant, window }) => ({
        id: constant,
        constants: { W: String(window), [constant]: "false" },
      })),
    ];
    checked = await checkAll(folder, "sessions.m", runs);
    found = await hunt(
      modelled.flatMap(({ constant, index, window }): Job[] => {
        const steps = checked.get(constant)?.steps ?? [];
        const job = { bounds: boundsOf(window), steps };
        return [
          { ...job, id: `${constant} left out`, rule: index },
          { ...job, id: `${constant} kept`, rule: null },
        ];
      }),
    );
  }, TIMEOUT_MS);

  test.each(WINDOWS)("finds nothing in all of its states, with W %s", (W) => {
    const run = checked.get(`W ${W}`);
    expect(run).toMatchObject({ failed: null, steps: [] });
    expect(run?.states).toBeGreaterThan(MIN_STATES);
  });

  test.each(modelled)("has a trace where it does not hold that $says", ({ constant }) => {
    const run = checked.get(constant);
    expect(Object.values(INVARIANTS)).toContain(run?.failed);
    expect(run?.steps.length).toBeGreaterThan(0);
  });

  test.each(modelled)("$constant: that trace breaks the code without the rule", ({ constant }) => {
    expect(found.get(`${constant} left out`)).toMatchObject({
      ...{ played: expect.any(String), problem: null },
    });
    expect(found.get(`${constant} kept`)).toMatchObject({ played: null, problem: null });
  });
});

test("a constant that the model does not have, or has twice, is refused", () => {
  expect(withConstants("  W: 1;  -- a\n", { W: "2" })).toBe("  W: 2;  -- a\n");
  expect(() => withConstants("", { W: "2" })).toThrow("no one line W");
  expect(() => withConstants("  W: 1;\n  W: 1;\n", { W: "2" })).toThrow("no one line W");
});
