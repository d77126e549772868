/**
 * `npm run rolling`: relay processes of one cluster behind a balancer, over a NATS of their own,
 * with agents and clients in two more processes, while nodes are restarted, killed and frozen, and
 * NATS too. Prints one JSON line per kind; exit 1 where a call was lost or run twice, or ended in
 * another way than is documented.
 */
import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { makeToken } from "@blindrelay/protocol";
import { ownNatsServer, ownPostgres } from "@blindrelay/relay-server/testing";
import { type RelayNode, type Relays, startRelays } from "../relays.ts";
import type { AgentKeys, AgentsReport, ClientsReport, Order } from "./messages.ts";
import { rotate, spend } from "./tokens.ts";

const KINDS = ["restarted", "killed", "frozen", "nats", "postgres"] as const;
/** Without calls beside them. */
const TOKEN_KINDS = ["rotated", "session"] as const;
const ALL_KINDS = [...KINDS, ...TOKEN_KINDS];
type Kind = (typeof KINDS)[number];

const HELP = `usage: npm run rolling -- [--agents N] [--clients N] [--calls N] [--rate N] [--kind ${ALL_KINDS.join("|")}]

Relay processes of one cluster under sealed calls, while each in turn is restarted by SIGTERM, then
killed, one is frozen for 30 s, and NATS, then PostgreSQL, is killed, frozen and restarted. Then
tokens are rotated on each node, with NATS and without, and one session token is used on all nodes at
once. Prints one JSON line per kind. Needs the programs of PostgreSQL and nats-server.

  --agents N   (300)
  --clients N  (12)
  --calls N    of each kind, at least (6000)
  --rate N     calls a second (300)
  --nodes N    (3)
  --frozen N   seconds (30)
  --kind KIND  only this one; may be repeated

Example:
  npm run rolling -- --agents 3000 --clients 60 --calls 60000 --rate 500 --kind restarted

Exit codes: 0 done, 1 a call was lost, run twice, late, or of unknown outcome, 2 usage.`;

const readFlags = () => {
  try {
    const { values } = parseArgs({
      options: {
        agents: { type: "string", default: "300" },
        clients: { type: "string", default: "12" },
        calls: { type: "string", default: "6000" },
        rate: { type: "string", default: "300" },
        nodes: { type: "string", default: "3" },
        frozen: { type: "string", default: "30" },
        kind: { type: "string", multiple: true, default: [...ALL_KINDS] },
        help: { type: "boolean", short: "h" },
      },
    });
    if (values.help !== true) return values;
    console.log(HELP);
    process.exit(0);
  } catch (error) {
    console.error(`${(error as Error).message}\n${HELP.split("\n")[0]}`);
    process.exit(2);
  }
};

const values = readFlags();
const agentCount = Number(values.agents);
const callCount = Number(values.calls);
const frozenMs = Number(values.frozen) * 1000;
const places = Array.from({ length: Number(values.nodes) }, (_, place) => place);

/** What a call may end with beside an answer: nothing was run, or it is safe to say so. */
const DOCUMENTED = ["OK", "AGENT_OFFLINE", "OUTCOME_UNKNOWN", "TIMED_OUT", "UNREACHABLE"];
/** By then the links of a token that was rotated have ended. */
const ENDED_MS = 1500;
/** Between two nodes: the links that were cut have come back. */
const HEAL_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "blindrelay-rolling-"));
// A folder of its own, which PostgreSQL's user can enter.
const databaseFolder = mkdtempSync(join(tmpdir(), "blindrelay-database-"));
const database = await ownPostgres(databaseFolder);
const nats = await ownNatsServer();
const relays: Relays = await startRelays(places.length, database.url, nats.url);

const addAgent = async (i: number): Promise<AgentKeys> => {
  const answer = await fetch(`${relays.nodes[0]?.url}/api/v1/agents`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${relays.accountToken}`,
    },
    body: JSON.stringify({ name: `pump ${i}` }),
  });
  const made = (await answer.json()) as { agent_id: string; api_token: string };
  return {
    id: made.agent_id,
    relayToken: made.api_token,
    agentToken: makeToken("e2e", randomBytes(32)),
  };
};
const agents: AgentKeys[] = [];
while (agents.length < agentCount) {
  const some = Array.from({ length: 8 }, (_, i) => addAgent(agents.length + i));
  agents.push(...(await Promise.all(some)));
}
agents.length = agentCount;
console.error(`${agentCount} agents made`);

const startChild = async (name: string, order: Order): Promise<ChildProcess> => {
  const child = fork(join(import.meta.dirname, `${name}.ts`));
  child.on("exit", (code) => code !== 0 && console.error(`${name} ended with ${code}`));
  child.send(order);
  await once(child, "message");
  console.error(`${name} ready`);
  return child;
};
const ask = async <T>(child: ChildProcess): Promise<T> => {
  child.send("report");
  const [report] = await once(child, "message");
  return report as T;
};
const order: Order = {
  url: relays.balancer.url,
  folder,
  accountToken: relays.accountToken,
  agents,
  clients: Number(values.clients),
  callsPerSecond: Number(values.rate),
};
const agentsChild = await startChild("agents", order);
const clientsChild = await startChild("clients", order);

/** As the nodes say it: every agent has one link, over all of them. */
const linkCounts = (): Promise<number[]> =>
  Promise.all(
    relays.nodes.map(async (node) => {
      if (node === null) return 0;
      const answer = await fetch(node.metricsUrl);
      return Number(/^blindrelay_agents_online (\d+)$/m.exec(await answer.text())?.[1] ?? 0);
    }),
  );
const links = async (): Promise<number> =>
  (await linkCounts()).reduce((sum, each) => sum + each, 0);
const healed = async (): Promise<boolean> => {
  const untilMs = performance.now() + HEAL_MS;
  while (performance.now() < untilMs) {
    if ((await links()) === agentCount) return true;
    await sleep(200);
  }
  return false;
};

const endedNodes: string[] = [];
/** A relay that ended without having been told to. */
const watchNodes = () => {
  for (const [place, node] of relays.nodes.entries()) {
    if (node !== null && node.child.exitCode !== null) endedNodes.push(`node ${place}`);
  }
};
const harm: { readonly [kind in Kind]: () => Promise<void> } = {
  restarted: async () => {
    for (const place of places) {
      const code = await relays.end(place, "SIGTERM");
      if (code !== 0) endedNodes.push(`node ${place}: exit ${code}`);
      await relays.start(place);
      await sleep(2000);
    }
  },
  killed: async () => {
    for (const place of places) {
      await relays.end(place, "SIGKILL");
      await relays.start(place);
      await healed();
    }
  },
  frozen: async () => {
    const node = relays.nodes[0];
    node?.child.kill("SIGSTOP");
    await sleep(2000); // until the balancer has noticed
    relays.balancer.cut(node?.url as string);
    await sleep(frozenMs);
    node?.child.kill("SIGCONT");
  },
  nats: async () => {
    await nats.stop();
    await sleep(5000);
    await nats.start();
    await sleep(5000);
    process.kill(nats.pid(), "SIGSTOP");
    await sleep(10_000);
    process.kill(nats.pid(), "SIGCONT");
    await sleep(5000);
    await nats.stop();
    await nats.start();
  },
  postgres: async () => {
    await database.stop("immediate");
    await sleep(5000);
    await database.start();
    await sleep(5000);
    database.signal("SIGSTOP");
    await sleep(10_000);
    database.signal("SIGCONT");
    await sleep(5000);
    await database.stop("fast");
    await database.start();
  },
};

const percentile = (sorted: readonly number[], share: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
const spread = (figures: readonly number[]) => {
  const sorted = [...figures].sort((a, b) => a - b);
  return {
    count: sorted.length,
    p50: percentile(sorted, 0.5),
    p99: percentile(sorted, 0.99),
    max: sorted.at(-1) ?? 0,
  };
};

let ok = true;
const print = (kind: string, good: boolean, figures: object) => {
  ok &&= good;
  console.log(JSON.stringify({ kind, ok: good, ...figures }));
};
await sleep(2000);
await ask(agentsChild);
let before = (await ask<ClientsReport>(clientsChild)).sent;
for (const kind of KINDS.filter((each) => values.kind.includes(each))) {
  const startedMs = performance.now();
  await harm[kind]();
  const isHealed = await healed();
  watchNodes();
  const parts: ClientsReport[] = [];
  const done = () => (parts.at(-1)?.sent ?? before) - before;
  do {
    await sleep(1000);
    parts.push(await ask<ClientsReport>(clientsChild));
  } while (done() < callCount);
  const said = await ask<AgentsReport>(agentsChild);
  const runs = new Map(said.runs);
  const outcomes: Record<string, number> = {};
  for (const part of parts) {
    for (const [code, count] of Object.entries(part.outcomes)) {
      outcomes[code] = (outcomes[code] ?? 0) + count;
    }
  }
  const sum = (field: "late" | "flaps") => parts.reduce((total, part) => total + part[field], 0);
  const answered = parts.flatMap((part) => part.answered);
  const figures = {
    calls: done(),
    outcomes,
    /** Acknowledged, and not run. */
    lost: answered.filter((call) => !runs.has(call)).length,
    twice: [...runs.values()].filter((times) => times > 1).length,
    late: sum("late"),
    flaps: sum("flaps"),
    call_ms: spread(parts.flatMap((part) => part.latencies)),
    without_link_ms: spread(said.gaps),
    moves: said.moves,
    links: await linkCounts(),
    seconds: Math.round((performance.now() - startedMs) / 1000),
    ended: endedNodes.splice(0),
  };
  const strange = Object.keys(outcomes).filter(
    (code) => !DOCUMENTED.includes(code.replace("*", "")),
  );
  const isSmooth =
    kind !== "restarted" ||
    (Object.keys(outcomes).join() === "OK" &&
      figures.flaps === 0 &&
      figures.without_link_ms.p99 < 1000);
  const good =
    isHealed &&
    isSmooth &&
    strange.length === 0 &&
    figures.ended.length === 0 &&
    figures.lost + figures.twice + figures.late === 0;
  before += done();
  print(kind, good, figures);
  for (const example of parts.flatMap((part) => part.examples).slice(0, 20)) console.error(example);
}

for (const child of [agentsChild, clientsChild]) child.send("stop");

const nodes = relays.nodes as RelayNode[];
if (values.kind.includes("rotated")) {
  const withNats = await rotate(nodes, relays.accountToken);
  await nats.stop();
  await sleep(1000);
  const without = await rotate(nodes, relays.accountToken);
  await nats.start();
  await sleep(3000);
  const good = Math.max(...withNats, ...without) <= ENDED_MS;
  print("rotated", good, { with_nats_ms: withNats, without_nats_ms: without });
}
if (values.kind.includes("session")) {
  const passed = await spend(nodes, relays.accountToken);
  print("session", passed === 10_000, { passed });
}

await relays.close();
await nats.stop();
await database.stop("immediate");
for (const each of [folder, databaseFolder]) rmSync(each, { recursive: true, force: true });
process.exit(ok ? 0 : 1);
