/**
 * The symbolic models (protocol/models/*.pv) give the results that they expect, and other ones
 * where a rule is left out. ProVerif is in no package of Debian's: PROVERIF_BIN names it.
 */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { REPOSITORY } from "../adversary/build.ts";

const MODELS = join(REPOSITORY, "protocol/models");
const binary = process.env.PROVERIF_BIN;
const why = binary === undefined ? " (requires PROVERIF_BIN)" : "";

const models = readdirSync(MODELS).filter((name) => name.endsWith(".pv"));
const read = (name: string): string => readFileSync(join(MODELS, name), "utf8");
const libraryOf = (model: string): string =>
  model.startsWith("exchange-") ? "exchange.pvl" : "suites.pvl";

const expectedIn = (text: string): string[] =>
  /\(\* expected: (.*) \*\)/.exec(text)?.[1]?.split(", ") ?? [];

/** Without the explanations in parentheses. */
const resultsIn = (output: string): string[] =>
  [...output.matchAll(/^RESULT [^(].* (?:is|be) (true|false|proved)\.$/gm)].map(
    ([, result = ""]) => result,
  );

const folder = mkdtempSync(join(tmpdir(), "blindrelay-proverif-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** What ProVerif finds in a model and its library, each text changed by `change`. */
const resultsOf = (model: string, change: (text: string) => string = (text) => text): string[] => {
  const [library, file] = [libraryOf(model), model].map((name) => {
    const path = join(folder, name);
    writeFileSync(path, change(read(name)));
    return path;
  }) as [string, string];
  const output = execFileSync(binary as string, ["-lib", library, file], {
    ...{ encoding: "utf8", timeout: 120_000, maxBuffer: 2 ** 26 },
  });
  return resultsIn(output);
};

/** A rule of section 2b, and a model that says something else without it. */
interface Rule {
  readonly says: string;
  readonly model: string;
  /** In the model or its library. */
  readonly find: string;
  readonly replace: string;
  readonly results: string;
}

const DATA_KEYS = "c2aData(k1, v, sid, X, Y)";
const OLD_KEYS = "c2a(k, v, sid)";
const LEAK = "(nextSeed(seed), e, nextDh(nextDh(d)))";
const leaks = (says: string, what: string): Rule => ({
  ...{ says, model: "exchange-thief.pv", find: LEAK, replace: what, results: "true, false" },
});

const RULES: readonly Rule[] = [
  leaks("the seed is replaced before it is used", "(seed, e, nextDh(nextDh(d)))"),
  leaks("dh is moved by each session", "(nextSeed(seed), e, nextDh(d))"),
  leaks("start is erased", "(nextSeed(seed), e, start)"),
  {
    says: "y is not made from the epoch's secret",
    model: "exchange-thief.pv",
    find: "Session(id, v, k, e, d, unpinned)",
    replace: "Session(id, v, k, e, e, unpinned)",
    results: "true, false",
  },
  {
    says: "calls are under the keys of the exchange",
    model: "exchange-thief.pv",
    ...{ find: DATA_KEYS, replace: OLD_KEYS, results: "true, false" },
  },
  {
    says: "x is erased",
    model: "exchange-thief.pv",
    find: "event Calls(id, v, C, A, n);\n",
    replace: "event Calls(id, v, C, A, n);\n  ( phase 1; out(net, x) ) |\n",
    results: "true, false",
  },
  {
    says: "a client pins the device's key",
    model: "exchange-insider.pv",
    ...{ find: "k, pinned(mul(base, s))", replace: "k, unpinned", results: "false, false, false" },
  },
  {
    says: "a device mixes its key in",
    model: "exchange-insider.pv",
    find: "ikmOfClient(pinned(S), z, x) = two(z, mul(S, x))",
    replace: "ikmOfClient(pinned(S), z, x) = one(z)",
    results: "false, false, false",
  },
  {
    says: "a client checks confirm",
    model: "exchange-insider.pv",
    find: "if tag = confirm(k1, v, sid, X, Y) then",
    replace: "",
    results: "false, true, false",
  },
];

const leftOut = (rule: Rule) => {
  let times = 0;
  const change = (text: string): string => {
    times += text.split(rule.find).length - 1;
    return text.replaceAll(rule.find, () => rule.replace);
  };
  return { change, times: () => times };
};

test.each(models)("%s says what it expects, for each query", (name) => {
  const text = read(name);
  expect(expectedIn(text)).toHaveLength(text.match(/^query /gm)?.length ?? 0);
});

test.each(RULES)("that $says can be left out, and gives other results", (rule) => {
  const { change, times } = leftOut(rule);
  for (const name of [libraryOf(rule.model), rule.model]) change(read(name));
  expect(times()).toBeGreaterThan(0);
  expect(rule.results).not.toBe(expectedIn(read(rule.model)).join(", "));
});

describe.skipIf(binary === undefined)(`ProVerif${why}`, () => {
  test.each(models)("finds what %s expects", (name) => {
    expect(resultsOf(name)).toEqual(expectedIn(read(name)));
  });

  test.each(RULES)("notices where it does not hold that $says", (rule) => {
    expect(resultsOf(rule.model, leftOut(rule).change).join(", ")).toBe(rule.results);
  });
});
