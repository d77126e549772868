/**
 * `npm run neighbours -- [--seconds N]`: prints what a user feels of others, and fails where a
 * round trip takes more than 5 times the idle p99, or a right login more than 2 s. By hand, on a
 * machine that does nothing else.
 */
import { endWithUsage, readFlags } from "../../flags.ts";
import { endWithRelays } from "../relay-process.ts";
import { neighbours } from "./neighbours.ts";

endWithRelays();
const LINE = {
  help: `usage: npm run neighbours -- [--seconds N]

What a user of a relay feels of another who does the worst that the limits allow, and of strangers
who guess passwords. On a machine that does nothing else.

  --seconds N  how long each part takes (20)

Example:
  npm run neighbours -- --seconds 60

Exit codes: 0 done, 1 a round trip took more than 5 times the idle p99 or a login more than 2 s, 2 usage.`,
  flags: { seconds: "20" },
};

const seconds = Number(readFlags(LINE).seconds);
if (!(seconds > 0)) endWithUsage(LINE, "--seconds takes a number above 0");
const { faults, ...report } = await neighbours(seconds);
console.log(JSON.stringify(report));
for (const fault of faults) console.error(`- ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
