/**
 * `npm run fuzz -- [--minutes N] [--seed N] [--mode M]`: by default twenty seconds in CI and five
 * elsewhere. The seed reproduces the inputs, but not their order between connections. Exit
 * codes: 0 nothing found, 1 found something, 2 usage.
 */
import { writeFileSync } from "node:fs";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { noOpenssl } from "@blindrelay/relay-server/testing";
import { endWithUsage, readFlags } from "../../flags.ts";
import { endWithRelays } from "../relay-process.ts";
import { fuzz } from "./fuzz.ts";
import { fuzzWire } from "./wire.ts";

const CI_SECONDS = 20;
const SECONDS = 5;
/** It may run beside the tests, which have deadlines. */
const PRIORITY = 5;
const MODES = ["all", "messages", "wire"];

endWithRelays();

const LINE = {
  help: `usage: npm run fuzz -- [--minutes N] [--seed N] [--mode all|messages|wire]

Random frames and requests against a relay of its own (messages); and broken heads, upgrades, bodies,
pipelines and handshakes against two more, over TCP and TLS (wire). A failing seed can be run again.

  --minutes N  how long (five seconds; twenty in CI)
  --seed N     makes the same frames, requests and connections again; drawn when absent
  --mode M     all (default, half of the time each), messages, or wire

Example:
  npm run fuzz -- --minutes 10 --seed 7

Exit codes: 0 nothing found, 1 found something, 2 usage.`,
  flags: { minutes: "", seed: "", mode: "all" },
};

const { minutes = "", seed = "", mode = "" } = readFlags(LINE);
const seconds = minutes === "" ? (process.env.CI ? CI_SECONDS : SECONDS) : Number(minutes) * 60;
const chosen = seed === "" ? Math.floor(Math.random() * 1_000_000) : Number(seed);
if (!(seconds > 0)) endWithUsage(LINE, "--minutes takes a number above 0");
if (!Number.isSafeInteger(chosen)) endWithUsage(LINE, "--seed takes a whole number");

if (!MODES.includes(mode)) endWithUsage(LINE, `--mode takes one of ${MODES.join(", ")}`);

setPriority(PRIORITY);
const share = mode === "all" ? seconds / 2 : seconds;
const faults: string[] = [];
const last: unknown[] = [];
if (mode !== "wire") {
  const { last: inputs, faults: found, ...report } = await fuzz(chosen, share);
  console.log(JSON.stringify(report));
  faults.push(...found);
  last.push(...inputs);
}
if (mode !== "messages") {
  const ways = noOpenssl ? [false] : [false, true];
  for (const report of await Promise.all(ways.map((tls) => fuzzWire(chosen, share, tls)))) {
    console.log(JSON.stringify({ seed: chosen, seconds: share, ...report }));
    faults.push(...report.faults);
  }
}
if (faults.length > 0) {
  const path = join(tmpdir(), `blindrelay-fuzz-${chosen}.json`);
  writeFileSync(path, JSON.stringify({ faults, last }, null, 2));
  console.error(`found with --seed ${chosen}; the last inputs are in ${path}`);
  for (const fault of faults) console.error(`- ${fault}`);
}
// Left to end by itself, Node 26.10 once span for ever in the closing of a handle.
process.exit(faults.length > 0 ? 1 : 0);
