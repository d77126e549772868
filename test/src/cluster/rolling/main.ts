/**
 * `npm run rolling`: relay processes of one cluster behind a balancer, over a NATS server of their
 * own, with agents and clients in two more processes, while nodes and NATS are restarted, killed
 * and frozen. Prints one JSON line per kind; exit code 1 if a call was lost, executed twice, or
 * ended in an undocumented way.
 */
import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeToken } from "@blindrelay/protocol";
import { ownNatsServer, ownPostgres } from "@blindrelay/relay-server/testing";
import { endWithUsage, readFlags } from "../../flags.ts";
import { cleanUp } from "../../instruments/clean-up.ts";
import { type RelayNode, type Relays, startRelays } from "../relays.ts";
import {
  type AgentKeys,
  type AgentsReport,
  type ClientsReport,
  isIdempotent,
  type Order,
  type Outcomes,
} from "./messages.ts";
import { rotate, spend } from "./tokens.ts";

const KINDS = ["restarted", "killed", "frozen", "nats", "postgres"] as const;
/** Those without concurrent calls. */
const TOKEN_KINDS = ["rotated", "session"] as const;
const ALL_KINDS = [...KINDS, ...TOKEN_KINDS];
type Kind = (typeof KINDS)[number];

const LINE = {
  help: `usage: npm run rolling -- [--agents N] [--boards N] [--clients N] [--calls N] [--rate N] [--kind KIND,KIND]

Relay processes of one cluster under sealed calls, every second of them marked idempotent, while each
in turn is restarted by SIGTERM, then killed, one is frozen for 30 s, and NATS, then PostgreSQL, is
killed, frozen and restarted. Then tokens are rotated on each node, with NATS and without, and one
session token is used on all nodes at once. Prints one JSON line per kind. Needs the programs of
PostgreSQL and nats-server.

  --agents N   (300)
  --boards N   of these hold one link only, as boards do (0)
  --clients N  (12)
  --calls N    of each kind, at least (6000)
  --rate N     calls a second (300)
  --nodes N    (3)
  --frozen N   seconds (30)
  --kind KIND  only these (${ALL_KINDS.join(",")})

Example:
  npm run rolling -- --agents 3000 --clients 60 --calls 60000 --rate 500 --kind restarted

Exit codes: 0 done, 1 a call was lost, run twice, late, or of unknown outcome, 2 usage.`,
  flags: {
    agents: "300",
    boards: "0",
    clients: "12",
    calls: "6000",
    rate: "300",
    nodes: "3",
    frozen: "30",
    kind: ALL_KINDS.join(","),
  },
};

const values = readFlags(LINE);
const numberOf = (flag: Exclude<keyof typeof LINE.flags, "kind">): number => {
  const value = Number(values[flag]);
  return Number.isSafeInteger(value) && value >= 0
    ? value
    : endWithUsage(LINE, `--${flag} takes a whole number`);
};
const kinds = (values.kind ?? "").split(",");
const unknown = kinds.filter((kind) => !(ALL_KINDS as readonly string[]).includes(kind));
if (unknown.length > 0) endWithUsage(LINE, `--kind: no such kind: ${unknown.join(", ")}`);
const agentCount = numberOf("agents");
const callCount = numberOf("calls");
const frozenMs = numberOf("frozen") * 1000;
const places = Array.from({ length: numberOf("nodes") }, (_, place) => place);

/** The permitted outcomes of a plain call: an answer, not executed, or unknown. */
const PLAIN = /^(OK|OUTCOME_UNKNOWN|TIMED_OUT|(AGENT_OFFLINE|UNREACHABLE|TIMED_OUT|BUSY)\*?)$/;
/** Those of an idempotent one: an answer, or an error after which it may be repeated. */
const IDEMPOTENT = /^(OK|[A-Z_]+\*)$/;
/** By then, the links of a rotated token have ended. */
const ENDED_MS = 1500;
/** Between two nodes: by then, the lost links have been replaced. */
const HEAL_MS = 60_000;

const folder = mkdtempSync(join(tmpdir(), "blindrelay-rolling-"));
// A folder of its own, which PostgreSQL's user can enter.
const databaseFolder = mkdtempSync(join(tmpdir(), "blindrelay-database-"));
const { undo, end } = cleanUp(folder, databaseFolder);
const database = await ownPostgres(databaseFolder);
undo.push(async () => {
  database.signal("SIGCONT");
  await database.stop("immediate");
});
const nats = await ownNatsServer();
undo.push(() => nats.stop());
const relays: Relays = await startRelays(places.length, database.url, nats.url);
undo.push(() => relays.close());

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
  undo.push(() => child.removeAllListeners("exit").kill("SIGKILL"));
  child.on("exit", (code) => code === 0 || console.error(`${name} ended with ${code}`));
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
  boards: numberOf("boards"),
  clients: numberOf("clients"),
  callsPerSecond: numberOf("rate"),
};
const agentsChild = await startChild("agents", order);
const clientsChild = await startChild("clients", order);

/** According to the nodes, every agent has one link in total. */
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
/** A relay that ended without being told to. */
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

const total = (parts: readonly Outcomes[]): Outcomes => {
  const sums: Outcomes = {};
  for (const part of parts) {
    for (const [code, count] of Object.entries(part)) sums[code] = (sums[code] ?? 0) + count;
  }
  return sums;
};

let ok = true;
const print = (kind: string, good: boolean, figures: object) => {
  ok &&= good;
  console.log(JSON.stringify({ kind, ok: good, ...figures }));
};
await sleep(2000);
await ask(agentsChild);
let before = (await ask<ClientsReport>(clientsChild)).sent;
for (const kind of KINDS.filter((each) => kinds.includes(each))) {
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
  const plain = total(parts.map((part) => part.plain));
  const idempotent = total(parts.map((part) => part.idempotent));
  const sum = (field: "late" | "flaps") => parts.reduce((total, part) => total + part[field], 0);
  const answered = parts.flatMap((part) => part.answered);
  const figures = {
    calls: done(),
    plain,
    idempotent,
    /** Acknowledged, but not executed. */
    lost: answered.filter((call) => !runs.has(call)).length,
    twice: [...runs].filter(([call, times]) => times > 1 && !isIdempotent(call)).length,
    late: sum("late"),
    flaps: sum("flaps"),
    call_ms: spread(parts.flatMap((part) => part.latencies)),
    without_link_ms: spread(said.withoutLink),
    boards_without_link_ms: spread(said.boardsWithoutLink),
    moving_ms: spread(said.moving),
    links: await linkCounts(),
    seconds: Math.round((performance.now() - startedMs) / 1000),
    ended: endedNodes.splice(0),
  };
  const codes = [...Object.keys(plain), ...Object.keys(idempotent)];
  const isDocumented =
    Object.keys(plain).every((code) => PLAIN.test(code)) &&
    Object.keys(idempotent).every((code) => IDEMPOTENT.test(code));
  const isSmooth =
    kind !== "restarted" ||
    (codes.every((code) => code === "OK") &&
      figures.flaps === 0 &&
      // An agent that logs in on another node can send nothing meanwhile, as if it had no link.
      spread([...said.withoutLink, ...said.moving]).p99 < 1000 &&
      figures.boards_without_link_ms.p99 < 7000);
  const good =
    isHealed &&
    isSmooth &&
    isDocumented &&
    figures.ended.length === 0 &&
    figures.lost + figures.twice + figures.late === 0;
  before += done();
  print(kind, good, figures);
  for (const example of parts.flatMap((part) => part.examples).slice(0, 20)) console.error(example);
}

for (const child of [agentsChild, clientsChild]) child.send("stop");

const nodes = relays.nodes as RelayNode[];
if (kinds.includes("rotated")) {
  const withNats = await rotate(nodes, relays.accountToken);
  await nats.stop();
  await sleep(1000);
  const without = await rotate(nodes, relays.accountToken);
  await nats.start();
  await sleep(3000);
  const good = Math.max(...withNats, ...without) <= ENDED_MS;
  print("rotated", good, { with_nats_ms: withNats, without_nats_ms: without });
}
if (kinds.includes("session")) {
  const passed = await spend(nodes, relays.accountToken);
  print("session", passed === 10_000, { passed });
}

await end(ok ? 0 : 1);
