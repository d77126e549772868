/**
 * By hand: `push --where … --staged 5% --abort-over 2%` of a program that fails on a tenth of the
 * devices, to live agents on Node. Prints for each seed how many devices were given it, which must
 * be fewer than 120 in all of them.
 *
 *     node test/src/fleet/staged-push.ts [AGENTS] [SEEDS]
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { type RunningAgent, startAgent } from "@blindrelay/agent-sdk/node";
import { FleetWorld, type Identity } from "./world.ts";

const MOST = 120;
const [count = 1000, seeds = 20] = process.argv.slice(2).map(Number);
const world = new FleetWorld();

/** Devices that have started the program that is being pushed. */
const given = new Set<string>();

const programOf = (seed: number): string => `export default (agent) => {
  let hash = ${seed};
  for (const c of agent.id) hash = Math.imul(hash ^ c.charCodeAt(0), 16777619) >>> 0;
  agent.handle("seed", () => ${seed});
  if ((hash >>> 8) % 10 === 0) throw new Error("no sensor");
};
`;

/** Starts it again whenever it asks for that, as a supervisor does. */
const begin = async (identity: Identity): Promise<void> => {
  const { agentId } = identity;
  let running: RunningAgent | null = null;
  const start = async (): Promise<void> => {
    running = await startAgent({
      ...{ ...identity, packetVersion: "1", log: () => undefined },
      stateDir: join(world.folder, "state", agentId),
      program: () => undefined,
      pushes: {
        load: async (file) => {
          const { default: program } = await import(`${pathToFileURL(file).href}?${Math.random()}`);
          return (agent) => {
            given.add(agentId);
            return program(agent);
          };
        },
        restart: () => void again(),
      },
    });
  };
  const again = async (): Promise<void> => {
    const before = running;
    running = null;
    await before?.stop();
    // A trial that throws ends its own start, which has asked for the next one already.
    if (before === null) await new Promise((done) => setTimeout(done, 0));
    await start().catch(() => undefined);
  };
  await start();
  await (running as RunningAgent | null)?.online();
};

await world.openWith(count, begin);
let most = 0;
for (let seed = 1; seed <= seeds; seed++) {
  given.clear();
  const file = join(world.folder, `seed-${seed}.mjs`);
  writeFileSync(file, programOf(seed));
  const rollout = ["--where", "id~unit-*", "--staged", "5%", "--abort-over", "2%", "--json"];
  const { code, stdout, stderr } = await world.command(["push", file, ...rollout]).ended;
  const { kept, failed, untouched } = JSON.parse(stdout.split("\n")[0] || stderr);
  most = Math.max(most, code === 1 ? given.size : count);
  const told = { kept: kept.length, failed: failed.length, untouched: untouched.length };
  console.log(JSON.stringify({ seed, code, given: given.size, ...told }));
}
await world.close();
process.exit(most < MOST ? 0 : 1);
