/**
 * `npm run neighbours -- [--seconds N]`: prints what a user feels of others, and fails where a
 * round trip takes more than 5 times the idle p99, or a right login more than 2 s. By hand, on a
 * machine that does nothing else.
 */
import { parseArgs } from "node:util";
import { endWithRelays } from "../relay-process.ts";
import { neighbours } from "./neighbours.ts";

endWithRelays();
const usage = (text: string): never => {
  console.error(`${text}\nusage: npm run neighbours -- [--seconds N]`);
  process.exit(2);
};

const readSeconds = (): number => {
  try {
    return Number(
      parseArgs({ options: { seconds: { type: "string", default: "20" } } }).values.seconds,
    );
  } catch (error) {
    return usage((error as Error).message);
  }
};

const seconds = readSeconds();
if (!(seconds > 0)) usage("--seconds takes a number above 0");
const { faults, ...report } = await neighbours(seconds);
console.log(JSON.stringify(report));
for (const fault of faults) console.error(`- ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
