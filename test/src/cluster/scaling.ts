/**
 * `npm run scaling`: what a call, a login and an idle link cost the relays of a cluster, NATS and
 * PostgreSQL in CPU time and memory, from /proc. Rounds of all placements are interleaved, so that
 * other load on the machine meets all alike. docs/scaling.md computes with the figures.
 */
import { randomBytes, randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { ownNatsServer, postgres } from "@blindrelay/relay-server/testing";
import { readFlags } from "../flags.ts";
import { type Relays, startRelays } from "./relays.ts";

const values = readFlags({
  help: `usage: npm run scaling -- [--calls N] [--rounds N] [--links N]

CPU of relays, NATS and PostgreSQL per call (client and agent on one node, or on two), per login,
and memory per idle link. Prints one JSON line per figure. Linux only; needs PostgreSQL
(BLINDRELAY_TEST_POSTGRES, one that nobody else uses) and the program nats-server.

  --calls N   of each placement and round (8000)
  --rounds N  (3)
  --links N   idle ones (2000)

Example:
  npm run scaling -- --calls 20000`,
  flags: { calls: "8000", rounds: "3", links: "2000" },
});
const CALLS = Number(values.calls);
const ROUNDS = Number(values.rounds);
const LINKS = Number(values.links);
/** Pairs of a client and an agent, each with several calls in flight. */
const PAIRS = 8;
const IN_FLIGHT = 4;
/** Within a session token's 10,000 requests. */
const MAX_CALLS = (PAIRS * 9000) / ROUNDS;
const SELDOM_CLIENTS = 150;
const SELDOM_CALLS = 10;
/** Longer than a node keeps an unused block of requests. */
const SELDOM_MS = 1500;
/** Bytes of a call's packet: about 200 bytes of plaintext, sealed. */
const SEALED = randomBytes(220).toString("base64url");
const TICK_MS = 10;

if (CALLS > MAX_CALLS) throw new Error(`--calls: at most ${Math.floor(MAX_CALLS)}`);

// ---- what the kernel knows

/** User and system time of a process, and of its ended children. */
const cpuMs = (pid: number): number => {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0) * TICK_MS;
};

const rssBytes = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

const parentOf = (pid: number): number =>
  Number(readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ")[1]);

/** For all processes of a PostgreSQL server. */
const postgresCpuMs = (postmaster: number): number => {
  let ms = cpuMs(postmaster);
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      if (parentOf(Number(name)) === postmaster) ms += cpuMs(Number(name));
    } catch {
      // It has ended.
    }
  }
  return ms;
};

// ---- peers

interface PeerLink {
  readonly socket: WebSocket;
  onText: (text: string) => void;
}

/** `auth`: all fields except the type. */
const connect = async (url: string, auth: object): Promise<PeerLink> => {
  const socket = new WebSocket(`${url.replace("http", "ws")}/wss`);
  const peer: PeerLink = { socket, onText: () => undefined };
  const answered = new Promise<string>((resolve, reject) => {
    socket.addEventListener("error", () => reject(new Error(`no link to ${url}`)));
    socket.addEventListener("open", () => socket.send(JSON.stringify({ type: "auth", ...auth })));
    peer.onText = resolve;
  });
  socket.addEventListener("message", ({ data }) => {
    const text = String(data);
    if (text === '{"type":"ping"}') socket.send('{"type":"pong"}');
    else peer.onText(text);
  });
  const answer = await answered;
  if (JSON.parse(answer).status !== "authenticated") throw new Error(answer);
  peer.onText = () => undefined;
  return peer;
};

const login = (relays: Relays) => ({ client_type: "client", api_token: relays.accountToken });

interface AddedAgent {
  readonly agent_id: string;
  readonly api_token: string;
}

const addAgent = async (relays: Relays): Promise<AddedAgent> => {
  const answer = await fetch(`${relays.nodes[0]?.url}/api/v1/agents`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${relays.accountToken}` },
    body: JSON.stringify({ name: "pump" }),
  });
  const { agent_id, api_token } = (await answer.json()) as AddedAgent;
  return { agent_id, api_token };
};

const urlOf = (relays: Relays, place: number): string => relays.nodes[place]?.url as string;

/** Pairs on the given nodes; `run` makes calls, each pair as fast as it is answered. */
const pairs = async (
  relays: Relays,
  clientsAt: number[],
  agentsAt: number[],
  count: number = PAIRS,
) => {
  const all: { client: PeerLink; agent: PeerLink; sid: string; seq: number }[] = [];
  for (let i = 0; i < count; i += 1) {
    const [from, to] = [clientsAt[i % clientsAt.length], agentsAt[i % agentsAt.length]];
    const made = await addAgent(relays);
    const agent = await connect(urlOf(relays, to as number), { client_type: "firmware", ...made });
    const client = await connect(urlOf(relays, from as number), login(relays));
    const sid = `${randomBytes(9).toString("base64url")}.0`;
    agent.onText = (text) => {
      const message = JSON.parse(text);
      const packet = message.type === "relay" ? JSON.parse(message.payload) : message;
      agent.socket.send(JSON.stringify({ v: "1", sid, seq: packet.seq, p: SEALED }));
    };
    const payload = JSON.stringify({ v: "1", sid, seq: 0, p: SEALED });
    const bound = new Promise<void>((resolve, reject) => {
      client.onText = (text) => {
        if (text.startsWith('{"v"')) resolve();
        else if (text.startsWith('{"type":"error"')) reject(new Error(text));
      };
    });
    const { agent_id } = made;
    client.socket.send(
      JSON.stringify({ type: "relay", request_id: randomUUID(), agent_id, payload }),
    );
    await bound;
    all.push({ client, agent, sid, seq: 0 });
  }
  const run = (calls: number) =>
    Promise.all(
      all.map((pair) => {
        const each = Math.ceil(calls / count);
        let [sent, answered] = [0, 0];
        const send = () => {
          if (sent === each) return;
          sent += 1;
          pair.seq += 1;
          pair.client.socket.send(
            JSON.stringify({ v: "1", sid: pair.sid, seq: pair.seq, p: SEALED }),
          );
        };
        return new Promise<void>((resolve, reject) => {
          pair.client.onText = (text) => {
            if (text.startsWith('{"type":"agent_status"')) return;
            if (!text.startsWith('{"v"')) reject(new Error(text));
            answered += 1;
            if (answered === each) resolve();
            else send();
          };
          for (let i = 0; i < IN_FLIGHT; i += 1) send();
        });
      }),
    );
  const close = () => {
    for (const { client, agent } of all) for (const peer of [client, agent]) end(peer);
  };
  return { run, close };
};

const end = ({ socket }: PeerLink): void => socket.close();

// ---- the figures

const show = (figure: string, fields: object) => console.log(JSON.stringify({ figure, ...fields }));
const round = (value: number) => Math.round(value * 10) / 10;

const measureCalls = async (relays: Relays, natsPid: number, postmaster: number) => {
  const placements = {
    "one node, local": await pairs(relays, [0], [0]),
    "two nodes, local": await pairs(relays, [0, 1], [0, 1]),
    "two nodes, remote": await pairs(relays, [0, 1], [1, 0]),
    "three nodes, local": await pairs(relays, [0, 1, 2], [0, 1, 2]),
    "three nodes, remote": await pairs(relays, [0, 1, 2], [1, 2, 0]),
    "three nodes, by chance": await pairs(relays, [0, 1, 2], [0, 0, 0]),
  };
  const pids = relays.nodes.map((node) => node?.child.pid as number);
  const look = () => [
    pids.reduce((sum, pid) => sum + cpuMs(pid), 0),
    cpuMs(natsPid),
    postgresCpuMs(postmaster),
  ];
  const sums = new Map<string, number[]>();
  for (let n = 0; n <= ROUNDS; n += 1) {
    for (const [name, { run }] of Object.entries(placements)) {
      const before = look();
      await run(n === 0 ? CALLS / 4 : CALLS);
      if (n === 0) continue; // until the code is compiled
      const after = look();
      const sum = sums.get(name) ?? [0, 0, 0];
      sums.set(
        name,
        sum.map((ms, at) => ms + (after[at] as number) - (before[at] as number)),
      );
    }
  }
  const base = sums.get("one node, local")?.[0] as number;
  for (const [name, ms] of sums) {
    const [relay = 0, nats = 0, pg = 0] = ms.map((sum) => (1000 * sum) / (CALLS * ROUNDS));
    show(name, {
      calls: CALLS * ROUNDS,
      relay_us: round(relay),
      nats_us: round(nats),
      postgres_us: round(pg),
      relay_ratio: Math.round((100 * (ms[0] as number)) / base) / 100,
    });
  }
  for (const { close } of Object.values(placements)) close();
};

/** Clients that rarely call: each call reserves requests anew, and returns the rest. */
const measureSeldom = async (relays: Relays, postmaster: number) => {
  const { run, close } = await pairs(relays, [0, 1, 2], [1, 2, 0], SELDOM_CLIENTS);
  const during = async (work: () => Promise<unknown>) => {
    const before = postgresCpuMs(postmaster);
    for (let n = 0; n < SELDOM_CALLS; n += 1) {
      await work();
      await sleep(SELDOM_MS);
    }
    return postgresCpuMs(postmaster) - before;
  };
  const idleMs = await during(async () => undefined);
  const busyMs = await during(() => run(SELDOM_CLIENTS));
  const calls = SELDOM_CLIENTS * SELDOM_CALLS;
  show("a call after 1.5 s without one", {
    calls,
    postgres_us: round((1000 * (busyMs - idleMs)) / calls),
  });
  show("an idle node", {
    postgres_us_per_s: round((1e6 * idleMs) / (SELDOM_CALLS * SELDOM_MS) / relays.nodes.length),
  });
  close();
};

const measureLinks = async (relays: Relays, natsPid: number, postmaster: number) => {
  const pid = relays.nodes[0]?.child.pid as number;
  const agents: AddedAgent[] = [];
  for (let i = 0; i < LINKS; i += 1) agents.push(await addAgent(relays));
  const watcher = await connect(urlOf(relays, 1), login(relays));
  const look = () => [cpuMs(pid), cpuMs(natsPid), postgresCpuMs(postmaster)];
  const memory = () => [rssBytes(pid), rssBytes(natsPid)];
  const [cpu, rss] = [look(), memory()];
  const peers: PeerLink[] = [];
  for (let at = 0; at < LINKS; at += 50) {
    const some = agents.slice(at, at + 50);
    const made = some.map((auth) =>
      connect(urlOf(relays, 0), { client_type: "firmware", ...auth }),
    );
    peers.push(...(await Promise.all(made)));
  }
  const [relay = 0, nats = 0, pg = 0] = look().map((ms, at) => ms - (cpu[at] as number));
  const [relayBytes = 0, natsBytes = 0] = memory().map((bytes, at) => bytes - (rss[at] as number));
  show("a login", {
    logins: LINKS,
    relay_us: round((1000 * relay) / LINKS),
    nats_us: round((1000 * nats) / LINKS),
    postgres_us: round((1000 * pg) / LINKS),
  });
  show("an idle link", {
    links: LINKS,
    relay_bytes: Math.round(relayBytes / LINKS),
    nats_bytes: Math.round(natsBytes / LINKS),
  });
  for (const peer of [...peers, watcher]) end(peer);
};

const engine = postgres();
const location = await engine.prepare();
if (location.engine !== "postgres") throw new Error("a cluster needs PostgreSQL");
const nats = await ownNatsServer();
// The clients call as fast as they can, and one account owns all agents.
Object.assign(process.env, {
  BLINDRELAY_RATE_PER_SECOND: "1000000",
  BLINDRELAY_RATE_BURST: "1000000",
});
const relays = await startRelays(3, location.url, nats.url);
try {
  const postmaster = await engine.pid();
  await measureCalls(relays, nats.pid(), postmaster);
  await measureSeldom(relays, postmaster);
  await measureLinks(relays, nats.pid(), postmaster);
} finally {
  await relays.close();
  await nats.stop();
  await engine.remove();
}
