/**
 * The server's processor time for accepting one agent: TCP, upgrade and `auth`, with the check of
 * its token if there is one. Connections are made in batches, alternating between all contenders.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Contender } from "./contenders.ts";
import type { Effort, Rig } from "./forwarding.ts";
import type { Generator } from "./generator/client.ts";
import { type Comparison, interleave, type Slice } from "./interleave.ts";
import { cpuUs } from "./usage.ts";

const BUNCH = 200;
/**
 * Each agent reconnects only every third time: the relay creates a session each time, keeps 16 per
 * agent, and would otherwise spend the time on removing old ones, unlike with a fleet that rarely
 * restarts.
 */
const BUNCHES_APART = 3;
/** With the warm-up, at most three times 16. */
const MOST_BUNCHES = 20;
/** Time for the server to notice that a batch has disconnected. */
const GONE_MS = 100;

export function measureConnecting(
  { generator, contenders }: Rig,
  effort: Effort,
): Promise<Comparison> {
  const count = Math.max(5, Math.round(BUNCH * effort.share));
  const entries = contenders.map((contender, i) => ({
    name: contender.name,
    matters: i < 2 || contender.metricsUrl !== null,
    slice: bunches(generator, contender, count),
  }));
  const cycles = Math.min(effort.cycles, MOST_BUNCHES);
  const warmUp = Math.min(effort.warmUp, MOST_BUNCHES);
  return interleave(entries, { cycles, warmUp }).finally(() => {
    for (const contender of contenders) contender.release();
  });
}

function bunches(generator: Generator, contender: Contender, count: number): () => Promise<Slice> {
  let made = 0;
  return async () => {
    const slice = await bunch(generator, contender, count);
    if (++made % BUNCHES_APART === 0) contender.release();
    return slice;
  };
}

async function bunch(generator: Generator, contender: Contender, count: number): Promise<Slice> {
  const group = `batch of ${contender.name}`;
  const peers = await contender.idle(count);
  const before = cpuUs(contender.pid);
  try {
    await generator.ask({ kind: "idle", group, peers });
    // Its share of the time is meaningless here: each connection waits for round trips.
    return { us: (cpuUs(contender.pid) - before) / count, generator: 0, server: 0 };
  } finally {
    await generator.ask({ kind: "close", group });
    await delay(GONE_MS);
  }
}
