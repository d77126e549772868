/**
 * One user who does the worst that the limits permit, and strangers who guess passwords, in a
 * process of their own. Each waits for its answer and continues at once, so they go as fast as the
 * relay lets them; the report has the counts.
 *
 * The process runs only when the machine is otherwise idle (SCHED_IDLE): what counts is the
 * attackers' cost to the relay, not that they share its machine, which real ones do not.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { setTimeout as wait } from "node:timers/promises";
import { RawLink } from "../raw-link.ts";
import { frame, upgraded } from "../raw-socket.ts";
import { logInFrom } from "./log-in-from.ts";

/** Each reads the most expensive lists one after another, and repeats a 429 at once. */
const READERS = 12;
/** Each changes an agent's metadata, for which all of the user's agents are counted. */
const WRITERS = 4;
/** Each has a link, and sends twice its limit on it, to agents that do not exist. */
const FLOODERS = 4;
const FLOOD_MESSAGES = 200;
const FLOOD_PAUSE_MS = 100;
/** Each has a link to an agent, and sends it the largest messages that the relay accepts. */
const SENDERS = 4;
const BIG_MESSAGE = 65_000;
/** If the relay reads too slowly, the sender waits, as any socket would. */
const QUEUE_BYTES = 1_048_576;
/** Each has a link to an agent, and sends it sessions and request ids that are all new. */
const NAMERS = 4;
/** Each connects, logs in and disconnects. */
const COMERS = 8;
/**
 * Clients that are notified of each agent that goes online or offline; some agents do only that.
 */
const WATCHERS = 300;
const FLAPPERS = 4;
/** Each guesses five times from one address, then moves to the next. */
const GUESSERS = 64;
const GUESSES_PER_ADDRESS = 5;

export interface OwnAgent {
  readonly agent_id: string;
  readonly api_token: string;
}

export interface Attack {
  readonly url: string;
  /** The greedy user's account token, and agents. */
  readonly account: string;
  readonly agents: readonly OwnAgent[];
  readonly seconds: number;
  readonly kinds: readonly AttackKind[];
}

/** How often each operation was done, such as `lists 200` or `guesses 401`. */
export type AttackReport = Readonly<Record<string, number>>;

/** Attacks from a separate process, until it is stopped. */
export const attackFromAside = async (attack: Attack): Promise<AttackReport> => {
  const child = fork(import.meta.filename, {
    execPath: "chrt",
    execArgv: ["--idle", "0", process.execPath],
    stdio: ["ignore", "inherit", "inherit", "ipc"],
  });
  child.send(attack);
  const [report] = await Promise.race([
    once(child, "message"),
    once(child, "exit").then(() => {
      throw new Error("the attackers ended without a report");
    }),
  ]);
  child.disconnect();
  return report as AttackReport;
};

/** What each kind of attacker needs; `index`: its number. */
interface Front extends Attack {
  readonly index: number;
  readonly port: number;
  goesOn(): boolean;
  /** Counts what was done. */
  note(what: string, times?: number): void;
}

const rest = async (
  { url, account, note }: Front,
  what: string,
  path: string,
  init: RequestInit = {},
) => {
  const headers = { authorization: `Bearer ${account}`, "content-type": "application/json" };
  const answer = await fetch(`${url}/api/v1${path}`, { ...init, headers });
  await answer.arrayBuffer();
  note(`${what} ${answer.status}`);
};

const LISTS = ["?online=true&limit=1", "?name=nomatch", "?limit=100"];

const read = async (front: Front): Promise<void> => {
  for (let turn = front.index; front.goesOn(); turn++) {
    await rest(front, "lists", `/agents${LISTS[turn % LISTS.length]}`);
  }
};

const write = async (front: Front): Promise<void> => {
  const { agent_id } = front.agents[front.index] as OwnAgent;
  for (let turn = 0; front.goesOn(); turn++) {
    const body = JSON.stringify({ metadata: { turn, x: "x".repeat(3000) } });
    await rest(front, "writes", `/agents/${agent_id}`, { method: "PATCH", body });
  }
};

const authOf = ({ account }: Front, agent?: OwnAgent): object =>
  agent === undefined
    ? { client_type: "client", api_token: account, presence: true }
    : { client_type: "agent", agent_id: agent.agent_id, api_token: agent.api_token };

const open = (front: Front, agent?: OwnAgent): Promise<RawLink | null> =>
  RawLink.open({ port: front.port, auth: authOf(front, agent) }).catch(() => null);

/** A link that reads and ignores everything. Throws if the relay does not admit it. */
const openSilent = async (front: Front, agent?: OwnAgent): Promise<Socket> => {
  const socket = await upgraded({ port: front.port });
  socket.write(frame(1, JSON.stringify({ type: "auth", ...authOf(front, agent) })));
  const [answer] = (await once(socket, "data")) as [Buffer];
  if (!answer.includes('"authenticated"')) throw new Error(`an attacker is not let in: ${answer}`);
  return socket;
};

/** Sends until the link is closed, then on another one. */
const sendForever = async (
  front: Front,
  what: string,
  send: (link: RawLink) => number,
): Promise<void> => {
  while (front.goesOn()) {
    const link = await open(front);
    if (link === null) continue;
    front.note(`${what} links`);
    while (front.goesOn() && link.socket.writable) {
      front.note(what, send(link));
      await wait(FLOOD_PAUSE_MS);
    }
    link.close();
  }
};

const flood = (front: Front): Promise<void> => {
  const payload = "x".repeat(500);
  let count = 0;
  return sendForever(front, "floods", (link) => {
    let sent = 0;
    for (; sent < FLOOD_MESSAGES && link.socket.writableLength < QUEUE_BYTES; sent++) {
      link.send({ type: "relay", agent_id: `nobody-${front.index}-${count++}`, payload });
    }
    return sent;
  });
};

const sendNewIds = async (front: Front): Promise<void> => {
  const agent = front.agents[SENDERS + front.index] as OwnAgent;
  const other = await openSilent(front, agent);
  let count = 0;
  await sendForever(front, "new ids", (link) => {
    let sent = 0;
    for (; sent < FLOOD_MESSAGES && link.socket.writableLength < QUEUE_BYTES; sent++) {
      const id = `${front.index}-${count++}-`.padEnd(64, "x");
      const payload = `{"v":"2","sid":"${id}","seq":0,"p":""}`;
      link.send({ type: "relay", agent_id: agent.agent_id, request_id: id, payload });
    }
    return sent;
  });
  other.destroy();
};

const sendBig = async (front: Front): Promise<void> => {
  const agent = front.agents[front.index] as OwnAgent;
  const payload = `{"v":"2","sid":"C${front.index}","seq":0,"p":"${"x".repeat(BIG_MESSAGE)}"}`;
  const bytes = frame(1, JSON.stringify({ type: "relay", agent_id: agent.agent_id, payload }));
  const other = await openSilent(front, agent);
  await sendForever(front, "big messages", ({ socket }) => {
    let sent = 0;
    for (; socket.writableLength < QUEUE_BYTES; sent++) socket.write(bytes);
    return sent;
  });
  other.destroy();
};

const comeAndGo = async (front: Front, agent?: OwnAgent): Promise<void> => {
  while (front.goesOn()) {
    const link = await open(front, agent);
    front.note(link === null ? "refused" : "logins");
    link?.close();
  }
};

const watch = async (front: Front): Promise<void> => {
  const sockets: Socket[] = [];
  while (sockets.length < WATCHERS && front.goesOn()) sockets.push(await openSilent(front));
  const flappers = front.agents.slice(-FLAPPERS);
  await Promise.all(flappers.map((agent) => comeAndGo(front, agent)));
  for (const socket of sockets) socket.destroy();
};

const guess = async ({ url, index, goesOn, note }: Front): Promise<void> => {
  for (let turn = 0; goesOn(); turn++) {
    const host = Math.floor(turn / GUESSES_PER_ADDRESS);
    const address = `127.${1 + index}.${Math.floor(host / 250) % 250}.${1 + (host % 250)}`;
    const body = { username: `user-${index}-${turn}`, password: "wrong" };
    note(`guesses ${await logInFrom(url, address, body)}`);
  }
};

const ATTACKERS = {
  lists: { count: READERS, run: read },
  writes: { count: WRITERS, run: write },
  floods: { count: FLOODERS, run: flood },
  ids: { count: NAMERS, run: sendNewIds },
  big: { count: SENDERS, run: sendBig },
  logins: { count: COMERS, run: (front: Front) => comeAndGo(front) },
  presence: { count: 1, run: watch },
  guesses: { count: GUESSERS, run: guess },
};

export type AttackKind = keyof typeof ATTACKERS;
export const KINDS = Object.keys(ATTACKERS) as AttackKind[];
/** The number of the user's own agents that the attackers need. */
export const AGENTS_NEEDED = SENDERS + NAMERS + FLAPPERS;

const run = async (attack: Attack): Promise<AttackReport> => {
  const end = performance.now() + attack.seconds * 1000;
  const done: Record<string, number> = {};
  const common = {
    ...attack,
    port: Number(new URL(attack.url).port),
    goesOn: () => performance.now() < end,
    note: (what: string, times = 1) => {
      done[what] = (done[what] ?? 0) + times;
    },
  };
  const jobs = attack.kinds.flatMap((kind) => {
    const { count, run } = ATTACKERS[kind];
    return Array.from({ length: count }, (_, index) => run({ ...common, index }));
  });
  await Promise.all(jobs);
  return done;
};

if (import.meta.main && process.send !== undefined) {
  process.once("message", async (attack: Attack) => {
    const report = await run(attack);
    process.send?.(report);
  });
}
