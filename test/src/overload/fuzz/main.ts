/**
 * `npm run fuzz -- [--minutes N] [--seed N]`: one minute in CI and five seconds elsewhere, unless
 * it is told. The seed makes the same frames and requests again; their order between connections is
 * the machine's. Exit codes: 0 nothing found, 1 found something, 2 usage.
 */
import { writeFileSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { endWithRelays } from "../relay-process.ts";
import { fuzz } from "./fuzz.ts";

const CI_SECONDS = 60;
const SECONDS = 5;
/** It may run beside the tests, which have deadlines. */
const PRIORITY = 5;

endWithRelays();

const usage = (text: string): never => {
  console.error(`${text}\nusage: npm run fuzz -- [--minutes N] [--seed N]`);
  process.exit(2);
};

const read = (): { minutes?: string; seed?: string } => {
  try {
    const options = { minutes: { type: "string" }, seed: { type: "string" } } as const;
    return parseArgs({ options }).values;
  } catch (error) {
    return usage((error as Error).message);
  }
};

const { minutes, seed } = read();
const seconds =
  minutes === undefined ? (process.env.CI ? CI_SECONDS : SECONDS) : Number(minutes) * 60;
const chosen = seed === undefined ? Math.floor(Math.random() * 1_000_000) : Number(seed);
if (!(seconds > 0)) usage("--minutes takes a number above 0");
if (!Number.isSafeInteger(chosen)) usage("--seed takes a whole number");

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
