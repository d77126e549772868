/** Clients that call agents repeatedly, each its own ones, and how each call ended. */
import { setTimeout as sleep } from "node:timers/promises";
import { CallError, type Client, connect } from "@blindrelay/client-sdk/node";
import {
  type AgentKeys,
  type ClientsReport,
  isIdempotent,
  type Outcomes,
  serve,
} from "./messages.ts";

const TIMEOUT_MS = 30_000;
/** Concurrent calls of one client. */
const AT_ONCE = 4;
const MAX_EXAMPLES = 20;

serve(async ({ url, accountToken, agents, clients, callsPerSecond }) => {
  let sent = 0;
  let lastCall = 0;
  const fresh = () => ({
    plain: {} as Outcomes,
    idempotent: {} as Outcomes,
    answered: [] as number[],
    late: 0,
    latencies: [] as number[],
    flaps: 0,
    examples: [] as string[],
  });
  let figures = fresh();
  const call = async (client: Client, { id, agentToken }: AgentKeys) => {
    lastCall += 1;
    sent += 1;
    const number = lastCall;
    const startedMs = performance.now();
    const idempotent = isIdempotent(number);
    let code: string;
    try {
      const result = await client
        .agent(id, agentToken)
        .call("run", { call: number }, { timeoutMs: TIMEOUT_MS, idempotent });
      code = result === number ? "OK" : "WRONG";
      figures.answered.push(number);
    } catch (error) {
      if (!(error instanceof CallError)) throw error;
      code = error.retryable ? `${error.code}*` : error.code;
      if (figures.examples.length < MAX_EXAMPLES) {
        figures.examples.push(`${new Date().toISOString()} ${number} ${id}: ${error.message}`);
      }
    }
    const ms = performance.now() - startedMs;
    figures.latencies.push(Math.round(ms));
    const outcomes = idempotent ? figures.idempotent : figures.plain;
    outcomes[code] = (outcomes[code] ?? 0) + 1;
    if (ms > TIMEOUT_MS + 1000) figures.late += 1;
  };
  const periodMs = (clients * AT_ONCE * 1000) / callsPerSecond;
  const worker = async (client: Client, own: readonly AgentKeys[], at: number) => {
    await sleep(Math.random() * periodMs);
    for (let turn = at; ; turn += AT_ONCE) {
      const startedMs = performance.now();
      await call(client, own[turn % own.length] as AgentKeys);
      await sleep(Math.max(0, periodMs - (performance.now() - startedMs)));
    }
  };
  for (let i = 0; i < clients; i += 1) {
    const client = await connect({ url, accountToken, presence: i === 0 });
    if (i === 0) {
      client.on("presence", ({ online }) => {
        if (!online) figures.flaps += 1;
      });
    }
    const own = agents.filter((_, at) => at % clients === i);
    for (let at = 0; at < AT_ONCE; at += 1) void worker(client, own, at);
  }
  return (): ClientsReport => {
    const report = { sent, ...figures };
    figures = fresh();
    return report;
  };
});
