/**
 * `npm run neighbours -- [--rounds N]`: prints how other users affect a user, and fails if a round
 * trip takes more than 5 times the idle p99, or a correct login more than 2 s. Run by hand, on an
 * otherwise idle machine.
 */
import { endWithUsage, readFlags } from "../../flags.ts";
import { endWithRelays } from "../relay-process.ts";
import { KINDS } from "./attack.ts";
import { neighbours } from "./neighbours.ts";

endWithRelays();
const LINE = {
  help: `usage: npm run neighbours -- [--rounds N] [--kinds KIND,...]

How a user of a relay is affected by another who does the worst that the limits permit, and by strangers
who guess passwords. Needs an otherwise idle machine with at least two cores.

  --rounds N        of 5 s without attackers and 13 s with them (4)
  --kinds KIND,...  only attackers of these kinds: ${KINDS.join(", ")}

Example:
  npm run neighbours -- --rounds 2 --kinds lists,guesses

Exit codes: 0 done, 1 a round trip took more than 5 times the idle p99, a login more than
2 s, or nothing was measured, 2 usage.`,
  flags: { rounds: "4", kinds: KINDS.join(",") },
};

const { rounds = "", kinds = "" } = readFlags(LINE);
if (!(Number(rounds) > 0)) endWithUsage(LINE, "--rounds takes a number above 0");
const chosen = KINDS.filter((kind) => kinds.split(",").includes(kind));
if (chosen.join() !== kinds) endWithUsage(LINE, `--kinds takes ${KINDS.join(", ")}, in this order`);
const { faults, ...report } = await neighbours(Number(rounds), chosen);
console.log(JSON.stringify(report));
for (const fault of faults) console.error(`- ${fault}`);
process.exitCode = faults.length > 0 ? 1 : 0;
