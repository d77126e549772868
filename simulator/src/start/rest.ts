/** The REST calls of a run: logging in, and creating, listing, rotating and removing agents. */
import { randomBytes } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { makeToken } from "@blindrelay/protocol";
import { KINDS } from "../devices/kinds.ts";
import type { RelayChild } from "./relay.ts";

/** An agent that exists on the relay, with both its secrets. */
export interface MadeAgent {
  id: string;
  name: string;
  kind: number;
  relayToken: string;
  agentToken: string;
}

export interface Account {
  accessToken: string;
  accountToken: string;
}

/** The relay's REST API. */
export interface RelayAt {
  readonly url: string;
}

const AGENTS_AT_ONCE = 32;
/** The interval for repeating a request to a busy relay, unless it specifies one. */
const PATIENCE = 20;
const MAX_WAIT_S = 60;
/** Agents per page. */
const PAGE = 200;

/** The relay's answer, if it is not a success. */
export class RestError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** Logs in as the relay's first admin. */
export async function logIn(relay: RelayChild, signal: AbortSignal): Promise<Account> {
  const body = { username: relay.username, password: relay.password };
  const answer = await send(relay, "POST", "/auth/login", null, body, signal);
  const { access_token, user } = answer as { access_token: string; user: { api_token: string } };
  return { accessToken: access_token, accountToken: user.api_token };
}

/**
 * Creates `count` agents, of all kinds in turn; `onMade` gets their number so far. The end-to-end
 * secrets are drawn here and stay here. `firstNumber`: of the first one's id, counted from 1.
 */
export async function makeAgents(
  relay: RelayAt,
  accessToken: string,
  count: number,
  seed: number,
  signal: AbortSignal,
  onMade: (made: number) => void,
  firstNumber = 1,
  kinds: readonly string[] = KINDS.map(({ name }) => name),
): Promise<MadeAgent[]> {
  const agents: MadeAgent[] = [];
  let made = 0;
  await eachAtOnce(count, async (i) => {
    const kind = i % kinds.length;
    const id = `${kinds[kind]}-${String(firstNumber + i).padStart(5, "0")}`;
    const name = `${id}, seed ${seed}`;
    const relayToken = await makeAgent(relay, accessToken, id, name, signal);
    agents[i] = { id, name, kind, relayToken, agentToken: makeToken("e2e", randomBytes(32)) };
    made += 1;
    onMade(made);
  });
  return agents;
}

/** Resolves with its relay token. */
export async function makeAgent(
  relay: RelayAt,
  token: string,
  id: string,
  name: string,
  signal: AbortSignal,
): Promise<string> {
  const answer = await send(relay, "POST", "/agents", token, { name, agent_id: id }, signal);
  return (answer as { api_token: string }).api_token;
}

/** Resolves with its new relay token; the old one is invalid at once. */
export async function rotateAgent(
  relay: RelayAt,
  token: string,
  id: string,
  signal: AbortSignal,
): Promise<string> {
  const answer = await send(relay, "POST", `/agents/${id}/rotate-token`, token, {}, signal);
  return (answer as { api_token: string }).api_token;
}

/** An agent that is already gone is not an error. */
export async function removeAgent(
  relay: RelayAt,
  token: string,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  await send(relay, "DELETE", `/agents/${id}`, token, null, signal).catch((error) => {
    if (!(error instanceof RestError && error.status === 404)) throw error;
  });
}

/**
 * Runs `go` for 0 to below `count`, several at once after the first: credentials that the relay
 * refuses are presented once, because it locks out whoever presents them five times. Rejects with
 * the first error, after all that were begun have ended.
 */
export async function eachAtOnce(count: number, go: (i: number) => Promise<void>): Promise<void> {
  let next = 0;
  const failures: unknown[] = [];
  async function goOn(): Promise<void> {
    if (next === count) return;
    await go(next++).catch((error) => {
      next = count;
      failures.push(error);
    });
  }
  async function work(): Promise<void> {
    while (next < count) await goOn();
  }
  await goOn();
  await Promise.all(Array.from({ length: AGENTS_AT_ONCE }, work));
  if (failures.length > 0) throw failures[0];
}

/** Ids of the account's agents that are online according to the relay. */
export async function onlineAgents(
  relay: RelayAt,
  token: string,
  signal: AbortSignal,
): Promise<Set<string>> {
  const ids = new Set<string>();
  let cursor: string | null = null;
  do {
    const after: string = cursor === null ? "" : `&cursor=${cursor}`;
    const path = `/agents?online=true&limit=${PAGE}${after}`;
    const page = (await send(relay, "GET", path, token, null, signal)) as {
      items: { agent_id: string }[];
      next_cursor: string | null;
    };
    for (const { agent_id } of page.items) ids.add(agent_id);
    cursor = page.next_cursor;
  } while (cursor !== null);
  return ids;
}

/** Waits as long as a busy relay asks for. Rejects with a RestError. */
async function send(
  relay: RelayAt,
  method: string,
  path: string,
  token: string | null,
  body: object | null,
  signal: AbortSignal,
): Promise<unknown> {
  for (let tries = 1; ; tries++) {
    const answer = await fetch(`${relay.url}/api/v1${path}`, {
      method,
      headers: {
        ...(body === null ? {} : { "content-type": "application/json" }),
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
      },
      ...(body === null ? {} : { body: JSON.stringify(body) }),
      signal,
    }).catch((error) => {
      const { cause, message } = error as Error & { cause?: Error };
      throw new Error(`${method} ${path}: ${cause?.message || message}`, { cause: error });
    });
    const text = await answer.text();
    if (answer.ok) return text === "" ? null : JSON.parse(text);
    const isBusy = answer.status === 429 || answer.status === 503;
    const waitS = Number(answer.headers.get("retry-after") ?? 1);
    if (!isBusy || tries === PATIENCE || !(waitS <= MAX_WAIT_S)) {
      const why = `${method} ${path}: HTTP ${answer.status} ${text.slice(0, 300)}`;
      throw new RestError(answer.status, why);
    }
    await delay(Math.max(0.1, waitS) * 1000, null, { signal });
  }
}
