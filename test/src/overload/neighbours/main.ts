/**
 * `npm run neighbours -- [--seconds N]`: prints what a user feels of others, and fails where a
 * round trip takes more than 5 times the idle p99, or a right login more than 2 s. By hand, on a
 * machine that does nothing else.
 */
import { parseArgs } from "node:util";
import { endWithRelays } from "../relay-process.ts";
import { neighbours } from "./neighbours.ts";

endWithRelays();
const { values } = parseArgs({ options: { seconds: { type: "string", default: "20" } } });
const seconds = Number(values.seconds);
if (!(seconds > 0)) {
  console.error("usage: npm run neighbours -- [--seconds N]");
  process.exit(2);
}
const { faults, ...report } = await neighbours(seconds);
console.log(JSON.stringify(report));
for (const fault of faults) console.error(`- ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
