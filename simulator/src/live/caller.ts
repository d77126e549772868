/**
 * The other side of a live run: clients that make sealed calls to every agent and check every
 * answer.
 *
 * Calls to one agent are made one after another, because the correct answer depends on earlier
 * ones; calls to different agents run concurrently, `concurrency` of them. Every call that is sent
 * ends in exactly one count: correct, or failed with a code. Every wait is bounded: a call has a
 * deadline, and when `signal` aborts, no further call is made and those in flight get a moment to
 * finish.
 */
import { type Agent, CallError, Client, relayUrl } from "@blindrelay/client-sdk/node";
import type { Interview, Role } from "../devices/kinds.ts";
import type { KindTally, Tally } from "../report/tally.ts";
import { clientPorts } from "./clients.ts";
import { liveLinkPort } from "./link.ts";

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
 * per session. With fewer clients, each sends and reads more messages at a time.
 */
const AGENTS_PER_CLIENT = 500;
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

/** Makes all calls, counting into `tally`. Rejects with a CallError if a client cannot connect. */
export async function callAll(options: CallerOptions, tally: Tally): Promise<void> {
  const { agents, signal, concurrency } = options;
  const clients = makeClients(options);
  const close = (): void => {
    for (const client of clients) client.close();
  };
  const stopped = Promise.withResolvers<never>();
  const stop = (): void => {
    stopped.reject(signal.reason);
    setTimeout(close, SETTLE_MS).unref();
  };
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  try {
    await Promise.race([Promise.all(clients.map((client) => client.start())), stopped.promise]);
    const tasks = agents.map((agent, i) =>
      makeTask(agent, clients[i % clients.length] as Client, options, tally),
    );
    const each = Math.ceil(concurrency / clients.length);
    await Promise.all(
      clients.map((_, c) =>
        askInTurn(
          tasks.filter((_, i) => i % clients.length === c),
          each,
          options,
          tally,
        ),
      ),
    );
  } finally {
    signal.removeEventListener("abort", stop);
    close();
  }
}

function makeClients({ url, accountToken, agents }: CallerOptions): Client[] {
  const link = liveLinkPort({ gathers: true });
  return Array.from(
    { length: Math.ceil(agents.length / AGENTS_PER_CLIENT) },
    () => new Client({ url: relayUrl(url), accountToken }, { ...clientPorts(), link }),
  );
}

/** Makes all calls to the agents of one client, `atOnce` of them at a time. */
async function askInTurn(
  tasks: readonly Task[],
  atOnce: number,
  options: CallerOptions,
  tally: Tally,
): Promise<void> {
  const planned = tasks.length * options.callsPerAgent;
  let next = 0;
  async function work(): Promise<void> {
    while (next < planned && !options.signal.aborted) {
      const task = tasks[next % tasks.length] as Task;
      next += 1;
      task.last = task.last.then(() => ask(task, options, tally));
      await task.last;
    }
  }
  await Promise.all(Array.from({ length: Math.min(atOnce, tasks.length) }, work));
}

function makeTask(
  { id, name, agentToken, kind }: CallerOptions["agents"][number],
  client: Client,
  { roles }: CallerOptions,
  tally: Tally,
): Task {
  const { name: kindName, interview } = roles[kind] as Role;
  const kindTally = tally.kind(kindName);
  kindTally.agents += 1;
  return {
    agent: client.agent(id, agentToken),
    kind: kindTally,
    interview: interview(name),
    last: Promise.resolve(),
    isFirst: true,
  };
}

async function ask(
  task: Task,
  { callTimeoutMs, signal }: CallerOptions,
  tally: Tally,
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
