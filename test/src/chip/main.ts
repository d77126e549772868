/**
 * `npm run chip -- [--clients N] [--calls N] [--minutes N] [--seed N]`: longer than the tests. The
 * agent on the emulated Cortex-M3 serves calls through a real relay and bridge, then takes messages
 * at random. Exit codes: 0 nothing found, 1 found something, 2 usage, 3 it cannot run here.
 */
import { endWithUsage, readFlags } from "../flags.ts";
import { cleanUp } from "../instruments/clean-up.ts";
import { FuzzedChip, fuzzChip } from "./fuzz.ts";
import { ChipFolder, ChipHouse, whySkipped, withoutChip } from "./house.ts";
import { leakOf, serve } from "./serve.ts";

const CANNOT_RUN = 3;
const MAX_LEAK_BYTES = 16;

const LINE = {
  help: `usage: npm run chip -- [--clients N] [--calls N] [--minutes N] [--seed N]

The agent on an emulated Cortex-M3 with 128 KB serves calls through a real relay and bridge, and then
takes messages at random from a relay and a client.

  --clients N  each with a session of its own (default 50)
  --calls N    in all (default 1000)
  --minutes N  of messages at random (default 1)
  --seed N     makes the same messages again; drawn when absent

Example:
  npm run chip -- --minutes 60 --seed 7

Exit codes: 0 nothing found, 1 found something, 2 usage, 3 the emulator or the compiler is missing.`,
  flags: { clients: "50", calls: "1000", minutes: "1", seed: "" },
};

const flags = readFlags(LINE);
const number = (name: string): number => {
  const value = Number(flags[name]);
  if (!(value > 0)) endWithUsage(LINE, `--${name} takes a number above 0`);
  return value;
};
const clients = number("clients");
const calls = number("calls");
const seconds = number("minutes") * 60;
const seed = flags.seed === "" ? Math.floor(Math.random() * 1_000_000) : number("seed");

if (withoutChip) {
  console.error(`the chip cannot run here${whySkipped}`);
  process.exit(CANNOT_RUN);
}
const stage = cleanUp();

const served = async (): Promise<void> => {
  const house = new ChipHouse();
  stage.undo.push(() => house.close());
  try {
    await house.open(await house.folder.image("agent"), { limits: { maxSessions: clients } });
    const { all, after } = await serve(house, [], clients, calls);
    const { heap, live, cStack, jsStack } = after;
    console.log(JSON.stringify({ clients, calls, heap, live, cStack, jsStack }));
    if (leakOf(all, after, calls) > MAX_LEAK_BYTES) throw new Error("calls leak");
  } catch (error) {
    throw new Error(`${(error as Error).message}\n${house.boot?.output.slice(-500)}`);
  } finally {
    await house.close();
  }
};

const fuzzed = async (): Promise<void> => {
  const folder = new ChipFolder();
  stage.undo.push(() => folder.close());
  try {
    const chip = await FuzzedChip.start(folder, await folder.image("agent"));
    console.log(JSON.stringify({ seed, seconds, ...(await fuzzChip(chip, seed, seconds)) }));
  } finally {
    await folder.close();
  }
};

try {
  await served();
  await fuzzed();
  await stage.end(0);
} catch (error) {
  // What fails because this is being ended is not found.
  if (!stage.ending) console.error(`found with --seed ${seed}: ${(error as Error).message}`);
  await stage.end(1);
}
