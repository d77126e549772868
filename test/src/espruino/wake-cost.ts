/**
 * `node test/src/espruino/wake-cost.ts`, run by hand: what a wake costs a sleeping board, on the
 * real Espruinos that ESPRUINO_BIN and ESPRUINO_BIN_2630 name, as a table for bench/README.md.
 */
import { binary, smallBinary } from "./engine.ts";
import { Sleeper } from "./sleeper.ts";

const WAKES = 8;
const IDLE_MS = 1000;
/** Longer than the client needs to learn that the agent disconnected. */
const SLEEP_MS = 2000;

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

interface Wake {
  readonly sent: number;
  readonly received: number;
  readonly exchanges: number;
  readonly ms: number;
  readonly cpu: number;
  readonly flash: number;
}

const measure = async (path: string, calls: number): Promise<[first: Wake, next: Wake]> => {
  const sleeper = await Sleeper.start(path, { sleepMs: SLEEP_MS, idleMs: IDLE_MS });
  const wakes: Wake[] = [];
  const agent = sleeper.fixture.client.agent(sleeper.agentId, sleeper.agentToken, { version: "2" });
  let start = await sleeper.wake();
  for (let wake = 0; wake < WAKES; wake++) {
    const cpu = sleeper.cpuMs();
    const waiting = [];
    for (let call = 0; call < calls; call++) {
      const params = { text: "x".repeat(20) };
      waiting.push(agent.call("echo", params, { waitForAgent: true, timeoutMs: 60_000 }));
    }
    await Promise.all(waiting);
    while (sleeper.links.length <= wake) await new Promise((resolve) => setTimeout(resolve, 50));
    const spent = sleeper.cpuMs() - cpu;
    const next = await sleeper.wake();
    const link = sleeper.links[wake];
    if (link !== undefined) wakes.push({ ...link, cpu: spent, flash: start.free - next.free });
    start = next;
  }
  await sleeper.end();
  const [first, ...rest] = wakes as [Wake, ...Wake[]];
  const of = (key: keyof Wake): number => median(rest.map((wake) => wake[key]));
  const next = {
    ...{ sent: of("sent"), received: of("received"), exchanges: of("exchanges") },
    ...{ ms: of("ms"), cpu: of("cpu"), flash: of("flash") },
  };
  return [first, next];
};

console.log(
  "| wake | bytes up | bytes down | round trips | online, ms | processor, ms | flash, bytes |",
);
console.log("|---|---|---|---|---|---|---|");
for (const [engine, path] of [
  ["", binary],
  [", 2,630 variables", smallBinary],
] as const) {
  if (path === null) continue;
  // Three at once may be too many for a small board.
  for (const calls of path === binary ? [0, 1, 3] : [0, 1]) {
    const [first, next] = await measure(path, calls);
    const row = (what: string, { sent, received, exchanges, ms, cpu, flash }: Wake): void => {
      const cells = [what, sent, received, exchanges + 1, Math.round(ms), cpu, flash];
      console.log(`| ${cells.join(" | ")} |`);
    };
    if (calls === 0) row(`the first, by the relay token${engine}`, first);
    row(`${calls === 0 ? "nothing waits" : `${calls} calls wait`}${engine}`, next);
  }
}
