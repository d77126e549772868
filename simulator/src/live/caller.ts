/**
 * The other side of a live run: clients that make sealed calls to every agent and check every
 * answer.
 *
 * Calls to one agent go one after the other, because what is right depends on what was answered
 * before; calls to different agents go side by side, `concurrency` of them. Every call that is sent
 * ends in exactly one count: right, or failed under a code. Every wait is bounded: a call has a
 * deadline, and when `signal` aborts, no further call is made and those under way get a moment to
 * end by themselves.
 */
import { type Agent, CallError, type Client, connect } from "@blindrelay/client-sdk/node";
import type { Interview, Role } from "../devices/kinds.ts";
import type { KindTally, Tally } from "../report/tally.ts";

export interface CallerOptions {
  /** The relay's http base. */
  url: string;
  accountToken: string;
  /** `kind`: index into `roles`. */
  agents: { id: string; name: string; agentToken: string; kind: number }[];
  roles: readonly Role[];
  callsPerAgent: number;
  /** Calls in flight at once, over all clients. */
  concurrency: number;
  callTimeoutMs: number;
  signal: AbortSignal;
}

/**
 * Far below what the relay allows a connection: 1,024 bindings (one per agent) and 10,000 requests
 * a session. Few agents a client also spread the calls over more connections, each of which may
 * send only some 1,000 messages a second.
 */
const AGENTS_PER_CLIENT = 250;
/** For calls in flight when a run is stopped. */
const SETTLE_MS = 500;

interface Task {
  agent: Agent;
  kind: KindTally;
  interview: Interview;
  /** The last call to this agent; the next one waits for it. */
  last: Promise<void>;
  isFirst: boolean;
}

/**
 * Makes all calls, counting into `tally`. Rejects with a CallError where a client cannot connect.
 */
export async function callAll(options: CallerOptions, tally: Tally): Promise<void> {
  const { agents, callsPerAgent, signal } = options;
  const planned = agents.length * callsPerAgent;
  const clients: Client[] = [];
  const hurry = new AbortController();
  const stop = (): void => void setTimeout(() => hurry.abort(signal.reason), SETTLE_MS).unref();
  signal.addEventListener("abort", stop, { once: true });
  let next = 0;
  async function work(tasks: Task[]): Promise<void> {
    while (next < planned && !signal.aborted) {
      const task = tasks[next % tasks.length] as Task;
      next += 1;
      task.last = task.last.then(() => ask(task, options, tally, hurry.signal));
      await task.last;
    }
  }
  try {
    await connectClients(options, clients);
    const tasks = makeTasks(options, clients, tally);
    const workers = Math.min(options.concurrency, agents.length);
    await Promise.all(Array.from({ length: workers }, () => work(tasks)));
  } finally {
    signal.removeEventListener("abort", stop);
    for (const client of clients) client.close();
  }
}

async function connectClients(options: CallerOptions, clients: Client[]): Promise<void> {
  const { url, accountToken, signal } = options;
  const count = Math.ceil(options.agents.length / AGENTS_PER_CLIENT);
  const connecting = Array.from({ length: count }, async () => {
    const client = await connect({ url, accountToken });
    if (signal.aborted) client.close();
    else clients.push(client);
  });
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => stopped.reject(signal.reason);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    await Promise.race([Promise.all(connecting), stopped.promise]);
  } finally {
    signal.removeEventListener("abort", stop);
  }
}

/** Neighbours go to different clients, so that all clients are busy all the time. */
function makeTasks(options: CallerOptions, clients: Client[], tally: Tally): Task[] {
  return options.agents.map(({ id, name, agentToken, kind }, i) => {
    const client = clients[i % clients.length] as Client;
    const { name: kindName, interview } = options.roles[kind] as Role;
    const kindTally = tally.kind(kindName);
    kindTally.agents += 1;
    return {
      agent: client.agent(id, agentToken),
      kind: kindTally,
      interview: interview(name),
      last: Promise.resolve(),
      isFirst: true,
    };
  });
}

async function ask(
  task: Task,
  { callTimeoutMs, signal }: CallerOptions,
  tally: Tally,
  hurry: AbortSignal,
): Promise<void> {
  if (signal.aborted) return;
  const question = task.interview.ask();
  const isFirst = task.isFirst;
  task.isFirst = false;
  tally.sent += 1;
  task.kind.calls += 1;
  const startedAt = performance.now();
  try {
    const result = await task.agent.call(question.method, question.params, {
      timeoutMs: callTimeoutMs,
      signal: hurry,
    });
    const us = (performance.now() - startedAt) * 1000;
    if (question.right(result)) tally.succeed(task.agent.id, task.kind, us, isFirst);
    else
      tally.fail(
        task.agent.id,
        "WRONG_ANSWER",
        `${task.agent.id} answered ${question.method} wrongly`,
      );
  } catch (error) {
    const { code, message } = describe(error);
    tally.fail(task.agent.id, code, message);
  }
}

function describe(error: unknown): { code: string; message: string } {
  if (!(error instanceof CallError)) throw error;
  const code = error.remote === undefined ? error.code : `${error.code} ${error.remote.code}`;
  return { code, message: error.message };
}
