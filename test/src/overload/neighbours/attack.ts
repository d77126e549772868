/**
 * One user who does the worst that the limits allow, and strangers who guess passwords, in their
 * own process with less priority than the relay: what they cost the relay is measured, and not that
 * they share its machine. Each of them waits for its answers and goes on at once, so they go as
 * fast as the relay lets them; what they reached is in the report.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { constants, getPriority, setPriority } from "node:os";
import { setTimeout as wait } from "node:timers/promises";
import { RawLink } from "../raw-link.ts";
import { logInFrom } from "./log-in-from.ts";

/** Each reads the dearest lists one after another, a 429 again at once. */
const READERS = 16;
/** Each has a link, and sends on it twice what it may, to agents that do not exist. */
const FLOODERS = 4;
const FLOOD_MESSAGES = 200;
const FLOOD_PAUSE_MS = 100;
/** A flooder whose link is not read any more waits, as anybody's socket would make it. */
const FLOOD_QUEUE_BYTES = 1_048_576;
/** Each guesses five times from one address, then moves to the next. */
const GUESSERS = 64;
const GUESSES_PER_ADDRESS = 5;
const LOWER_PRIORITY = 10;

export interface Attack {
  readonly url: string;
  /** The greedy user's account token. */
  readonly account: string;
  readonly seconds: number;
}

/** What the attackers were answered, by status; messages by how many were sent. */
export interface AttackReport {
  readonly reads: Record<string, number>;
  readonly guesses: Record<string, number>;
  readonly messages: number;
  readonly links: number;
}

/** Attacks from a separate process, until it is stopped. */
export const attackFromAside = async (attack: Attack): Promise<AttackReport> => {
  const child = fork(import.meta.filename, { stdio: ["ignore", "inherit", "inherit", "ipc"] });
  const priority = Math.min(constants.priority.PRIORITY_LOW, getPriority() + LOWER_PRIORITY);
  setPriority(child.pid as number, priority);
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

const run = async ({ url, account, seconds }: Attack): Promise<AttackReport> => {
  const end = performance.now() + seconds * 1000;
  const goesOn = () => performance.now() < end;
  const reads: Record<string, number> = {};
  const guesses: Record<string, number> = {};
  const sent = { messages: 0, links: 0 };
  await Promise.all([
    ...Array.from({ length: READERS }, (_, i) => read(url, account, i, goesOn, reads)),
    ...Array.from({ length: FLOODERS }, (_, i) => flood(url, account, i, goesOn, sent)),
    ...Array.from({ length: GUESSERS }, (_, i) => guess(url, i, goesOn, guesses)),
  ]);
  return { reads, guesses, ...sent };
};

const PATHS = ["?online=true&limit=1", "?name=nomatch", "?limit=100"];

const read = async (
  url: string,
  account: string,
  i: number,
  goesOn: () => boolean,
  statuses: Record<string, number>,
): Promise<void> => {
  const headers = { authorization: `Bearer ${account}` };
  for (let turn = i; goesOn(); turn++) {
    const answer = await fetch(`${url}/api/v1/agents${PATHS[turn % PATHS.length]}`, { headers });
    await answer.text();
    statuses[answer.status] = (statuses[answer.status] ?? 0) + 1;
  }
};

const flood = async (
  url: string,
  account: string,
  i: number,
  goesOn: () => boolean,
  sent: { messages: number; links: number },
): Promise<void> => {
  const port = Number(new URL(url).port);
  const auth = { client_type: "client", api_token: account };
  const payload = "x".repeat(500);
  while (goesOn()) {
    const link = await RawLink.open({ port, auth });
    sent.links += 1;
    while (goesOn() && link.socket.writable) {
      for (let n = 0; n < FLOOD_MESSAGES; n++) {
        if (link.socket.writableLength > FLOOD_QUEUE_BYTES) break;
        link.send({ type: "relay", agent_id: `nobody-${i}-${sent.messages}`, payload });
        sent.messages += 1;
      }
      await wait(FLOOD_PAUSE_MS);
    }
    link.close();
  }
};

const guess = async (
  url: string,
  i: number,
  goesOn: () => boolean,
  statuses: Record<string, number>,
): Promise<void> => {
  for (let turn = 0; goesOn(); turn++) {
    const host = Math.floor(turn / GUESSES_PER_ADDRESS);
    const address = `127.${1 + i}.${Math.floor(host / 250) % 250}.${1 + (host % 250)}`;
    const body = { username: `user-${i}-${turn}`, password: "wrong" };
    const status = await logInFrom(url, address, body);
    statuses[status] = (statuses[status] ?? 0) + 1;
  }
};

if (import.meta.main && process.send !== undefined) {
  process.once("message", async (attack: Attack) => {
    const report = await run(attack);
    process.send?.(report);
  });
}
