/**
 * The server's processor time for forwarding one message. Messages circulate: the client of a pair
 * sends a packet, its agent sends it back, and so on, with several in flight for each pair.
 */
import type { Contender } from "./contenders.ts";
import type { Generator } from "./generator/client.ts";
import type { Load } from "./generator/messages.ts";
import { type Comparison, interleave, type Pace, type Slice } from "./interleave.ts";
import type { Scenario } from "./sections.ts";
import { cpuUs } from "./usage.ts";

/** The running contenders, and the generator that drives them. */
export interface Rig {
  readonly generator: Generator;
  /** The yardstick, its twin, the relay, and others. */
  readonly contenders: readonly Contender[];
}

/**
 * Share of a slice that runs first, uncounted: a contender that has just had its turn finds warm
 * caches, and with the order reversed each cycle only the first and the last would benefit.
 */
const LEAD = 0.25;

export interface Effort extends Pace {
  readonly sliceMs: number;
  /** Scale of pairs, connections and so on: 1 is full size. */
  readonly share: number;
}

/** Rejects if a connection or a message is lost. */
export async function measureForwarding(
  { generator, contenders }: Rig,
  scenario: Scenario,
  effort: Effort,
): Promise<Comparison> {
  const count = Math.max(2, Math.round(scenario.pairs * effort.share));
  try {
    for (const contender of contenders) {
      const pairs = await contender.pairs(count, scenario.bytes);
      await generator.ask({ kind: "pairs", group: groupOf(contender), pairs });
    }
    const entries = contenders.map((contender, i) => ({
      name: contender.name,
      matters: i < 2 || contender.metricsUrl !== null,
      slice: () => slice(generator, contender, scenario.load, effort.sliceMs),
    }));
    return await interleave(entries, effort);
  } finally {
    for (const contender of contenders) {
      await generator.ask({ kind: "close", group: groupOf(contender) });
      contender.release();
    }
  }
}

async function slice(
  generator: Generator,
  contender: Contender,
  load: Load,
  ms: number,
): Promise<Slice> {
  const command = { kind: "slice", group: groupOf(contender), load } as const;
  await generator.ask({ kind: "renew", group: command.group });
  await generator.ask({ ...command, ms: ms * LEAD });
  const before = cpuUs(contender.pid);
  const { messages, wallUs, cpuUs: own } = await generator.ask({ ...command, ms });
  const used = cpuUs(contender.pid) - before;
  return { us: used / Math.max(1, messages), generator: own / wallUs, server: used / wallUs };
}

function groupOf({ name }: Contender): string {
  return `pairs of ${name}`;
}
