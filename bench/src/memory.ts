/**
 * The memory of an idle connection: the slope of a server's anonymous resident memory over waves of
 * connections. A single difference says little, because heaps grow in steps.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Contender } from "./contenders.ts";
import type { Generator } from "./generator/client.ts";
import { anonymousBytes } from "./usage.ts";

const SETTLE_TIMES = 12;
const SETTLED = 0.01;
/** Time for the server to forget disconnected peers, and for the relay to store when they left. */
const GONE_SETTLES = 6;
/** Below this share of explained variance the points do not lie on a line. */
export const FIT_LEAST = 0.95;

interface Waves {
  /** Connections in total. */
  readonly idle: number;
  readonly waves: number;
  /** Between two readings of the memory. */
  readonly settleMs: number;
}

export interface MemoryResult {
  readonly name: string;
  readonly points: readonly { readonly connections: number; readonly bytes: number }[];
  /** Bytes per connection, by least squares. */
  readonly slope: number;
  readonly fit: number;
  /** Bytes of JavaScript objects that a connection keeps alive; null if they cannot be measured. */
  readonly liveHeap: number | null;
}

/** Holds `idle` connections, made in waves, and closes them. */
export async function measureMemory(
  generator: Generator,
  contender: Contender,
  { idle, waves, settleMs }: Waves,
): Promise<MemoryResult> {
  const group = `waves of ${contender.name}`;
  const points: { connections: number; bytes: number }[] = [];
  const count = Math.round(idle / waves);
  // All before the first wave: the relay's agents are created over REST, which costs memory too.
  const peers = await contender.idle(waves * count);
  let liveHeap: number | null = null;
  try {
    for (let connections = count; connections <= peers.length; connections += count) {
      await generator.ask({
        kind: "idle",
        group,
        peers: peers.slice(connections - count, connections),
      });
      points.push({ connections, bytes: await settled(contender.pid, settleMs) });
    }
    if (contender.liveHeap !== null) {
      const full = await contender.liveHeap();
      await generator.ask({ kind: "close", group });
      await delay(GONE_SETTLES * settleMs);
      liveHeap = (full - (await contender.liveHeap())) / peers.length;
    }
  } finally {
    await generator.ask({ kind: "close", group });
    contender.release();
  }
  return { name: contender.name, points, ...line(points), liveHeap };
}

/** Whether the points lie on a line, so that its slope is meaningful. */
export function isLine({ fit }: MemoryResult): boolean {
  return fit >= FIT_LEAST;
}

/** The memory once it is stable, or after SETTLE_TIMES readings. */
async function settled(pid: number, settleMs: number): Promise<number> {
  let last = anonymousBytes(pid);
  for (let i = 0; i < SETTLE_TIMES; i++) {
    await delay(settleMs);
    const bytes = anonymousBytes(pid);
    if (Math.abs(bytes / last - 1) < SETTLED) return bytes;
    last = bytes;
  }
  return last;
}

/** Least squares; `fit` is R squared. */
export function line(points: readonly { readonly connections: number; readonly bytes: number }[]): {
  slope: number;
  fit: number;
} {
  const mean = (values: number[]): number => values.reduce((a, b) => a + b, 0) / values.length;
  const x = mean(points.map(({ connections }) => connections));
  const y = mean(points.map(({ bytes }) => bytes));
  let xx = 0;
  let xy = 0;
  let yy = 0;
  for (const { connections, bytes } of points) {
    xx += (connections - x) ** 2;
    xy += (connections - x) * (bytes - y);
    yy += (bytes - y) ** 2;
  }
  return { slope: xy / xx, fit: yy === 0 ? 0 : xy ** 2 / (xx * yy) };
}
