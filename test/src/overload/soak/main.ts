/**
 * `npm run soak -- [--agents N] [--minutes N] [--seed N]`: by default 1,000 agents for ten minutes.
 * Exit codes: 0 memory is level, 1 it rises or something was lost, 2 usage.
 */
import { endWithUsage, readFlags } from "../../flags.ts";
import { endWithRelays } from "../relay-process.ts";
import { soak } from "./soak.ts";

endWithRelays();

const LINE = {
  help: `usage: npm run soak -- [--agents N] [--minutes N] [--seed N]

A fleet that comes, goes and talks, against a relay of its own; fails where the relay's memory rises.

  --agents N   how many agents (1000)
  --minutes N  how long (10)
  --seed N     draws who does what when (1)

Example:
  npm run soak -- --agents 200 --minutes 60

Exit codes: 0 memory is level, 1 it rises or something was lost, 2 usage.`,
  flags: { agents: "1000", minutes: "10", seed: "1" },
};

const values = readFlags(LINE);
const [agents, minutes, seed] = [values.agents, values.minutes, values.seed].map(Number) as [
  number,
  number,
  number,
];
if (!Number.isSafeInteger(agents) || agents < 1) {
  endWithUsage(LINE, "--agents takes a whole number above 0");
}
if (!(minutes > 0)) endWithUsage(LINE, "--minutes takes a number above 0");
if (!Number.isSafeInteger(seed)) endWithUsage(LINE, "--seed takes a whole number");

const { faults, ...report } = await soak(agents, minutes, seed, (text) => console.error(text));
console.log(JSON.stringify(report));
for (const fault of faults) console.error(`- ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
