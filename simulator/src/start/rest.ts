/**
 * The REST calls of a run (contract, section 4): log in, make the agents, read the relay's metrics.
 */

import { randomBytes } from "node:crypto";
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

const AGENTS_AT_ONCE = 16;

/** Logs in as the relay's first admin. */
export async function logIn(relay: RelayChild, signal: AbortSignal): Promise<Account> {
  const body = { username: relay.username, password: relay.password };
  const answer = await post(relay, "/auth/login", null, body, signal);
  const { access_token, user } = answer as { access_token: string; user: { api_token: string } };
  return { accessToken: access_token, accountToken: user.api_token };
}

/**
 * Makes `count` agents, of all kinds in turn; `onMade` gets their number so far. The E2E secrets
 * are made here and stay here. `firstNumber`: of the first one's id, counted from 1.
 */
export async function makeAgents(
  relay: RelayChild,
  accessToken: string,
  count: number,
  seed: number,
  signal: AbortSignal,
  onMade: (made: number) => void,
  firstNumber = 1,
  kinds: readonly string[] = KINDS.map(({ name }) => name),
): Promise<MadeAgent[]> {
  const agents: MadeAgent[] = [];
  let next = 0;
  let made = 0;
  async function work(): Promise<void> {
    while (next < count) {
      const i = next++;
      const kind = i % kinds.length;
      const id = `${kinds[kind]}-${String(firstNumber + i).padStart(5, "0")}`;
      const name = `${id}, seed ${seed}`;
      const answer = await post(relay, "/agents", accessToken, { name, agent_id: id }, signal);
      const relayToken = (answer as { api_token: string }).api_token;
      agents[i] = { id, name, kind, relayToken, agentToken: makeToken("e2e", randomBytes(32)) };
      made += 1;
      onMade(made);
    }
  }
  await Promise.all(Array.from({ length: AGENTS_AT_ONCE }, work));
  return agents;
}

/** What the relay's process has used and done so far. */
export interface RelayUsage {
  rssBytes: number;
  cpuUs: number;
  forwarded: number;
}

/** Reads `/metrics`; null where the relay does not answer or does not say. */
export async function readUsage(metricsUrl: string): Promise<RelayUsage | null> {
  try {
    const answer = await fetch(metricsUrl, { signal: AbortSignal.timeout(2_000) });
    const text = await answer.text();
    const usage = {
      rssBytes: sum(text, "process_resident_memory_bytes"),
      cpuUs: Math.round(sum(text, "process_cpu_seconds_total") * 1e6),
      forwarded: sum(text, "blindrelay_forwarded_total"),
    };
    return Object.values(usage).every(Number.isFinite) ? usage : null;
  } catch {
    return null;
  }
}

/** The sum of all samples of one metric in the Prometheus text format; NaN where there is none. */
function sum(text: string, metric: string): number {
  const samples = [...text.matchAll(new RegExp(`^${metric}(?:\\{[^}]*\\})? ([0-9.e+-]+)$`, "gm"))];
  return samples.length === 0
    ? Number.NaN
    : samples.reduce((total, [, value]) => total + Number(value), 0);
}

async function post(
  relay: RelayChild,
  path: string,
  token: string | null,
  body: object,
  signal: AbortSignal,
): Promise<unknown> {
  const answer = await fetch(`${relay.url}/api/v1${path}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
    signal,
  }).catch((error) => {
    throw new Error(`POST ${path}: ${error.cause?.message ?? error.message}`, { cause: error });
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`POST ${path}: HTTP ${answer.status} ${text.slice(0, 300)}`);
  return JSON.parse(text);
}
