/**
 * The server's processor time for accepting one agent: TCP, upgrade and `auth`, with the check of
 * its token if there is one. Connections are made in bunches, alternating between all contenders.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Contender } from "./contenders.ts";
import type { Effort, Rig } from "./forwarding.ts";
import type { Generator } from "./generator/client.ts";
import { type Comparison, interleave, type Slice } from "./interleave.ts";
import { cpuUs } from "./usage.ts";

const BUNCH = 200;
/**
 * Each agent comes in every third time: the relay makes it a session, keeps 16 of an agent, and
 * would spend the time on removing old ones, as for no fleet that restarts now and then.
 */
const BUNCHES_APART = 3;
/** With the warm-up's, not more than three times 16. */
const MOST_BUNCHES = 20;
/** For the server to notice that a bunch has gone. */
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
  const group = `bunch of ${contender.name}`;
  const peers = await contender.idle(count);
  const before = cpuUs(contender.pid);
  try {
    await generator.connectIdle(group, peers);
    // Its share of the time says nothing here: each connection waits for round trips.
    return { us: (cpuUs(contender.pid) - before) / count, generator: 0, server: 0 };
  } finally {
    await generator.close(group);
    await delay(GONE_MS);
  }
}
