/**
 * `npm run fuzz -- [--minutes N] [--seed N]`: by default one minute in CI and five seconds
 * elsewhere. The seed reproduces the frames and requests, but not their order between connections.
 * Exit codes: 0 nothing found, 1 found something, 2 usage.
 */
import { writeFileSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { endWithUsage, readFlags } from "../../flags.ts";
import { endWithRelays } from "../relay-process.ts";
import { fuzz } from "./fuzz.ts";

const CI_SECONDS = 60;
const SECONDS = 5;
/** It may run beside the tests, which have deadlines. */
const PRIORITY = 5;

endWithRelays();

const LINE = {
  help: `usage: npm run fuzz -- [--minutes N] [--seed N]

Random frames and requests against a relay of its own. A failing seed can be run again.

  --minutes N  how long (five seconds; one minute in CI)
  --seed N     makes the same frames and requests again; drawn when absent

Example:
  npm run fuzz -- --minutes 10 --seed 7

Exit codes: 0 nothing found, 1 found something, 2 usage.`,
  flags: { minutes: "", seed: "" },
};

const { minutes = "", seed = "" } = readFlags(LINE);
const seconds = minutes === "" ? (process.env.CI ? CI_SECONDS : SECONDS) : Number(minutes) * 60;
const chosen = seed === "" ? Math.floor(Math.random() * 1_000_000) : Number(seed);
if (!(seconds > 0)) endWithUsage(LINE, "--minutes takes a number above 0");
if (!Number.isSafeInteger(chosen)) endWithUsage(LINE, "--seed takes a whole number");

setPriority(PRIORITY);
const { last, faults, ...report } = await fuzz(chosen, seconds);
console.log(JSON.stringify(report));
if (faults.length > 0) {
  const path = join(tmpdir(), `blindrelay-fuzz-${chosen}.json`);
  writeFileSync(path, JSON.stringify({ faults, last }, null, 2));
  console.error(`found with --seed ${chosen}; the last inputs are in ${path}`);
  for (const fault of faults) console.error(`- ${fault}`);
  process.exitCode = 1;
}
