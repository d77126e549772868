/** The load generator: a process that receives over IPC what to connect and when to send. */
import type { Answer, Command, Load, PairPlan, SliceResult } from "./messages.ts";
import { Peer } from "./peer.ts";

/** Connections that are opened at a time. */
const AT_ONCE = 64;
/** A server that is late by this much has lost the messages. */
const LOST_MS = 20_000;
/** Between two rounds of a fixed rate. */
const ROUND_MS = 2;
/** The most messages written together. */
const MAX_WINDOW = 16;

/** The part of a client's message limit after which it is replaced, between two slices. */
const RENEWED_AT = 0.5;

interface Pair {
  readonly plan: PairPlan;
  client: Peer;
  readonly agent: Peer;
}

const pairs = new Map<string, Pair[]>();
const peers = new Map<string, Peer[]>();

process.on("message", (command: Command) => {
  perform(command).then(
    (result) => answer({ ok: true, result }),
    (error: unknown) => answer({ ok: false, error: String((error as Error)?.message ?? error) }),
  );
});
process.on("disconnect", () => process.exit());
// Ctrl-C reaches the whole process group; the benchmark stops this process when it is done with it.
process.on("SIGINT", () => {});

function answer(message: Answer): void {
  process.send?.(message);
}

async function perform(command: Command): Promise<SliceResult | null> {
  switch (command.kind) {
    case "pairs":
      pairs.set(command.group, await each(command.pairs, connectPair));
      return null;
    case "idle": {
      const held = peers.get(command.group) ?? [];
      held.push(...(await each(command.peers, (plan) => Peer.connect(plan))));
      peers.set(command.group, held);
      return null;
    }
    case "renew":
      await each((pairs.get(command.group) ?? []).filter(isSpent), renew);
      return null;
    case "slice":
      return slice(pairs.get(command.group) ?? [], command.load, command.ms);
    case "close":
      for (const { client, agent } of pairs.get(command.group) ?? []) {
        client.close();
        agent.close();
      }
      for (const peer of peers.get(command.group) ?? []) peer.close();
      pairs.delete(command.group);
      peers.delete(command.group);
      return null;
  }
}

/** Like `map`, with AT_ONCE calls at a time. */
async function each<A, B>(list: readonly A[], make: (one: A) => Promise<B>): Promise<B[]> {
  const made: B[] = [];
  let next = 0;
  const work = async (): Promise<void> => {
    while (next < list.length) {
      const i = next++;
      made[i] = await make(list[i] as A);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE, list.length) }, work));
  return made;
}

async function connectPair(plan: PairPlan): Promise<Pair> {
  const [client, agent] = await Promise.all([Peer.connect(plan.client), Peer.connect(plan.agent)]);
  await ready(plan, client, agent);
  return { plan, client, agent };
}

async function ready(plan: PairPlan, client: Peer, agent: Peer): Promise<void> {
  if (plan.bind !== undefined) await Peer.bind(client, agent, plan.bind);
  client.ready(plan.toAgent, plan.toClient, MAX_WINDOW);
  agent.ready(plan.toClient, plan.toAgent, MAX_WINDOW);
}

function isSpent({ plan: { most }, client }: Pair): boolean {
  return most !== undefined && client.sent > most * RENEWED_AT;
}

async function renew(pair: Pair): Promise<void> {
  pair.client.close();
  pair.agent.rest();
  pair.client = await Peer.connect(pair.plan.client);
  await ready(pair.plan, pair.client, pair.agent);
}

/** Messages circulate until the time is up; then all that are in flight are awaited. */
async function slice(all: readonly Pair[], load: Load, ms: number): Promise<SliceResult> {
  const drained = Promise.withResolvers<void>();
  const refills = "window" in load;
  let messages = 0;
  let underWay = 0;
  let sending = true;
  // A client that has used up its limit rests until it is renewed.
  const send = ({ plan: { most }, client }: Pair, count: number): void => {
    const allowed = most === undefined ? count : Math.min(count, most - client.sent);
    underWay += allowed;
    client.send(allowed);
  };
  for (const pair of all) {
    const { client, agent } = pair;
    client.failed = agent.failed = drained.reject;
    agent.arrived = (count) => {
      messages += count;
      agent.send(count);
    };
    client.arrived = (count) => {
      messages += count;
      underWay -= count;
      if (sending && refills) send(pair, count);
      else if (!sending && underWay === 0) drained.resolve();
      if (underWay < 0) drained.reject(new Error("more messages arrived than were sent"));
    };
  }
  const startedUs = performance.now() * 1000;
  const before = process.cpuUsage();
  if (refills) for (const pair of all) send(pair, load.window);
  const stop = refills ? () => {} : atRate(all, load.perSecond, send);
  await Promise.race([new Promise((resolve) => setTimeout(resolve, ms)), drained.promise]);
  stop();
  sending = false;
  const lost = setTimeout(
    () => drained.reject(new Error(`${underWay} messages did not come back`)),
    LOST_MS,
  );
  if (underWay === 0) drained.resolve();
  await drained.promise.finally(() => clearTimeout(lost));
  const { user, system } = process.cpuUsage(before);
  return { messages, wallUs: performance.now() * 1000 - startedUs, cpuUs: user + system };
}

/** Each pair in turn, `perSecond` in all. Returns a function that stops it. */
function atRate(
  all: readonly Pair[],
  perSecond: number,
  send: (pair: Pair, count: number) => void,
): () => void {
  const startedMs = performance.now();
  let sent = 0;
  const timer = setInterval(() => {
    const due = ((performance.now() - startedMs) * perSecond) / 1000;
    for (; sent < due; sent++) send(all[sent % all.length] as Pair, 1);
  }, ROUND_MS);
  return () => clearInterval(timer);
}
