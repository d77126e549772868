/**
 * `npm run mutants -- FILES`: which changes of the code no unit test notices. StrykerJS changes one
 * expression or statement at a time and runs the unit tests that reach it. A folder stands for its
 * files. Where test files are among FILES, no others run, which is quicker. Only tests of the same
 * package count: others import the package as it is installed, which is the source that nobody has
 * changed.
 */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { Stryker } from "@stryker-mutator/core";

const ROOT = resolve(import.meta.dirname, "..");

const USAGE = 2;

const endWithUsage = (problem: string): never => {
  console.error(`mutants: ${problem}`);
  console.error("usage: npm run mutants -- FILE_OR_FOLDER... [TEST_FILE...]");
  process.exit(USAGE);
};

const names = process.argv.slice(2);
if (names.length === 0) endWithUsage("name a file or a folder");

const patternOf = (name: string): string => {
  const path = relative(ROOT, resolve(process.env.INIT_CWD ?? ".", name));
  const found = statSync(join(ROOT, path), { throwIfNoEntry: false });
  if (found === undefined) return endWithUsage(`there is no ${name}`);
  return found.isDirectory() ? `${path}/**/*.ts` : path;
};

const patterns = names.map(patternOf);
const isTest = (pattern: string): boolean => pattern.endsWith(".test.ts");
process.chdir(ROOT);
// A runner whose time is up is killed with all that it started, and leaves its folders.
const folder = mkdtempSync(join(tmpdir(), "blindrelay-mutants-"));
process.env.TMPDIR = folder;
process.on("exit", () => rmSync(folder, { recursive: true, force: true }));
await new Stryker({
  mutate: [...patterns.filter((each) => !isTest(each)), "!**/*.test.ts", "!**/testing/**"],
  testFiles: patterns.filter(isTest),
  testRunner: "vitest",
  plugins: ["@stryker-mutator/vitest-runner"],
  vitest: { configFile: "scripts/unit-tests.ts" },
  coverageAnalysis: "perTest",
  // Of what runs at the import of a module nobody can tell which tests it concerns.
  ignoreStatic: true,
  // A name that does not exist: Stryker would read it by a function that TypeScript 7 lacks.
  tsconfigFile: "none.json",
  // The changed copies of the repository; a folder in `node_modules` would have no tests.
  tempDirName: join(folder, "copies"),
  concurrency: Math.max(1, availableParallelism() - 1),
  reporters: ["clear-text", "html"],
  htmlReporter: { fileName: "report/mutants.html" },
  clearTextReporter: { logTests: false, reportTests: false, reportScoreTable: true },
  thresholds: { high: 90, low: 75, break: null },
}).runMutationTest();
