/**
 * The symbolic models of suites "1" and "2" (protocol/models/*.pv) give the results that they
 * expect. ProVerif is in no package of Debian's: PROVERIF_BIN names it.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { REPOSITORY } from "../adversary/build.ts";

const MODELS = join(REPOSITORY, "protocol/models");
const LIBRARY = join(MODELS, "suites.pvl");
const binary = process.env.PROVERIF_BIN;
const why = binary === undefined ? " (requires PROVERIF_BIN)" : "";

const models = readdirSync(MODELS).filter((name) => name.endsWith(".pv"));

const expectedIn = (text: string): string[] =>
  /\(\* expected: (.*) \*\)/.exec(text)?.[1]?.split(", ") ?? [];

/** Without the explanations in parentheses. */
const resultsIn = (output: string): string[] =>
  [...output.matchAll(/^RESULT [^(].* (?:is|be) (true|false|proved)\.$/gm)].map(
    ([, result = ""]) => result,
  );

test.each(models)("%s says what it expects, for each query", (name) => {
  const text = readFileSync(join(MODELS, name), "utf8");
  expect(expectedIn(text)).toHaveLength(text.match(/^query /gm)?.length ?? 0);
});

describe.skipIf(binary === undefined)(`ProVerif${why}`, () => {
  test.each(models)("finds what %s expects", (name) => {
    const output = execFileSync(binary as string, ["-lib", LIBRARY, join(MODELS, name)], {
      ...{ encoding: "utf8", timeout: 120_000, maxBuffer: 2 ** 26 },
    });
    expect(resultsIn(output)).toEqual(expectedIn(readFileSync(join(MODELS, name), "utf8")));
  });
});
