/**
 * By hand: a call to many live agents whose command is killed again and again.
 *
 *     node test/src/fleet/kill.ts [AGENTS] [KILLS]
 */
import { join } from "node:path";
import { broken, callKilled, FleetWorld } from "./world.ts";

const [count = 10_000, kills = 20] = process.argv.slice(2).map(Number);
const world = new FleetWorld();
await world.open(count, (n, ran) => (agent) => {
  agent.handle("act", () => {
    ran();
    return { n };
  });
});
const journal = join(world.folder, "journal.jsonl");
const { outcomes, killed } = await callKilled(world, journal, kills);
const counted = new Map<string, number>();
for (const outcome of outcomes.values()) counted.set(outcome, (counted.get(outcome) ?? 0) + 1);
const ran = [...world.runs.values()].reduce((sum, runs) => sum + runs, 0);
const wrong = broken(world, outcomes);
console.log(JSON.stringify({ agents: count, kills: killed, ...Object.fromEntries(counted), ran }));
for (const text of wrong) console.log(text);
await world.close();
process.exit(wrong.length === 0 ? 0 : 1);
