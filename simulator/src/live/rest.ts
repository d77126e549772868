/** The REST calls of a run: logging in, and creating, listing, rotating and removing agents. */
import { randomBytes } from "node:crypto";
import { Rest, RestError } from "@blindrelay/client-sdk/rest";
import { makeToken } from "@blindrelay/protocol";
import { KINDS } from "../devices/kinds.ts";
import type { RelayChild } from "./relay-process.ts";

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
/** Agents per page. */
const PAGE = 200;
/** Of a run, which asks much at once: a busy relay is waited for. */
const LIMITS = { retries: 20, longestWaitS: 60 };

const restOf = ({ url }: RelayAt, token: string | null, signal: AbortSignal): Rest =>
  new Rest({ url, token, signal, limits: LIMITS });

/** Logs in as the relay's first admin. */
export async function logIn(relay: RelayChild, signal: AbortSignal): Promise<Account> {
  const { username, password } = relay;
  const { access_token, user } = await restOf(relay, null, signal).logIn({ username, password });
  return { accessToken: access_token, accountToken: user.api_token ?? "" };
}

/**
 * Creates `count` agents, of all kinds in turn; `onMade` gets their number so far. The end-to-end
 * secrets are drawn here and stay here. `firstNumber`: of the first one's id, counted from 1.
 */
export async function makeAgents(
  relay: RelayAt,
  accessToken: string,
  count: number,
  signal: AbortSignal,
  onMade: (made: number) => void,
  firstNumber = 1,
): Promise<MadeAgent[]> {
  const agents: MadeAgent[] = [];
  let made = 0;
  await eachAtOnce(count, async (i) => {
    const kind = i % KINDS.length;
    const id = `${KINDS[kind]?.name}-${String(firstNumber + i).padStart(5, "0")}`;
    const relayToken = await makeAgent(relay, accessToken, id, id, signal);
    agents[i] = { id, name: id, kind, relayToken, agentToken: makeToken("e2e", randomBytes(32)) };
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
  const body = { name, agent_id: id };
  return (await restOf(relay, token, signal).ask("AgentCreated", "POST", "/agents", body))
    .api_token;
}

/** Resolves with its new relay token; the old one is invalid at once. */
export async function rotateAgent(
  relay: RelayAt,
  token: string,
  id: string,
  signal: AbortSignal,
): Promise<string> {
  const rest = restOf(relay, token, signal);
  return (await rest.ask("RotateAgentAnswer", "POST", `/agents/${id}/rotate-token`)).api_token;
}

/** An agent that is already gone is not an error. */
export async function removeAgent(
  relay: RelayAt,
  token: string,
  id: string,
  signal: AbortSignal,
): Promise<void> {
  await restOf(relay, token, signal)
    .tell("DELETE", `/agents/${id}`)
    .catch((error) => {
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
  const query = { online: true, limit: PAGE };
  const online = await restOf(relay, token, signal).list("AgentPage", "/agents", query);
  return new Set(online.map(({ agent_id }) => agent_id));
}
