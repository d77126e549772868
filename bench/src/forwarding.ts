/**
 * What forwarding one message costs the forwarder's processor. Messages go round: the client of a
 * pair sends a bare packet, its agent sends it back, and so on, `window` of them under way for each
 * pair.
 */
import { setTimeout as delay } from "node:timers/promises";
import type { Contender, Pair } from "./contenders.ts";
import { type Entry, interleave, type Standing } from "./interleave.ts";

/** Names as in the facts: c1 = one under way for each of 100 pairs, w4 = four for each of 50. */
export interface Scenario {
  name: string;
  pairs: number;
  window: number;
  /** Of the whole packet as JSON text. */
  bytes: number;
}

export const SCENARIOS: readonly Scenario[] = [
  { name: "c1", pairs: 100, window: 1, bytes: 256 },
  { name: "w4", pairs: 50, window: 4, bytes: 256 },
];

const SLICE_MS = 150;

export interface ForwardingResult {
  scenario: Scenario;
  standings: Standing[];
  valid: boolean;
}

/** Measures one scenario. Rejects where a connection is lost on the way. */
export async function measureForwarding(
  scenario: Scenario,
  contenders: readonly Contender[],
  cycles: number,
): Promise<ForwardingResult> {
  const all: Pair[] = [];
  try {
    const entries: Entry[] = [];
    for (const contender of contenders) {
      const pairs = await contender.connectPairs(scenario.pairs);
      all.push(...pairs);
      entries.push({ name: contender.name, slice: () => slice(contender, pairs, scenario) });
    }
    return { scenario, ...(await interleave(entries, cycles)) };
  } finally {
    for (const { client, agent } of all) {
      client.close();
      agent.close();
    }
  }
}

/** One slice: messages go round for SLICE_MS, then all that are under way come home. */
async function slice(contender: Contender, pairs: Pair[], scenario: Scenario): Promise<number> {
  let forwarded = 0;
  let underWay = 0;
  let sending = true;
  const drained = Promise.withResolvers<void>();
  const before = await contender.cpuUs();
  for (const { client, agent, sid } of pairs) {
    const text = packet(sid, scenario.bytes);
    client.failed = agent.failed = drained.reject;
    agent.received = (received) => {
      forwarded += 1;
      agent.send(received);
    };
    client.received = () => {
      forwarded += 1;
      if (sending) client.send(text);
      else if (--underWay === 0) drained.resolve();
    };
    for (let i = 0; i < scenario.window; i++) {
      underWay += 1;
      client.send(text);
    }
  }
  await Promise.race([delay(SLICE_MS), drained.promise]);
  sending = false;
  await drained.promise;
  return ((await contender.cpuUs()) - before) / forwarded;
}

function packet(sid: string, bytes: number): string {
  const empty = JSON.stringify({ v: "1", sid, seq: 1, p: "" });
  return JSON.stringify({ v: "1", sid, seq: 1, p: "A".repeat(bytes - empty.length) });
}
