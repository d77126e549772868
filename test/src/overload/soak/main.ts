/**
 * `npm run soak -- [--agents N] [--minutes N] [--seed N]`: 1,000 agents for ten minutes unless
 * told. Exit codes: 0 memory is level, 1 it rises or something was lost, 2 usage.
 */
import { parseArgs } from "node:util";
import { endWithRelays } from "../relay-process.ts";
import { soak } from "./soak.ts";

endWithRelays();

const usage = (text: string): never => {
  console.error(`${text}\nusage: npm run soak -- [--agents N] [--minutes N] [--seed N]`);
  process.exit(2);
};

const read = (): { agents: string; minutes: string; seed: string } => {
  try {
    const options = {
      agents: { type: "string", default: "1000" },
      minutes: { type: "string", default: "10" },
      seed: { type: "string", default: "1" },
    } as const;
    return parseArgs({ options }).values;
  } catch (error) {
    return usage((error as Error).message);
  }
};

const values = read();
const agents = Number(values.agents);
const minutes = Number(values.minutes);
const seed = Number(values.seed);
if (!Number.isSafeInteger(agents) || agents < 1) usage("--agents takes a whole number above 0");
if (!(minutes > 0)) usage("--minutes takes a number above 0");
if (!Number.isSafeInteger(seed)) usage("--seed takes a whole number");

const { faults, ...report } = await soak(agents, minutes, seed, (text) => console.error(text));
console.log(JSON.stringify(report));
for (const fault of faults) console.error(`- ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
