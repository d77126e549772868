/**
 * One piece of work for each of many agents: in stages, bounded, stopped when too much of it goes
 * wrong, with an outcome for every agent. `Client.fleet` makes calls with it; `blindrelay push
 * --where` pushes programs.
 */
import { CALL_TIMEOUT_MS } from "./core/defaults.ts";
import { CallError } from "./errors.ts";

/**
 * How it went with one agent. `ok`: it answered. `error`: it answered with an error, or with
 * something unreadable. `offline`: not reached; it did not run. `unknown`: sent and not answered;
 * it may have run. `skipped`: not sent.
 */
export type OutcomeKind = "ok" | "error" | "offline" | "unknown" | "skipped";

export interface FleetOutcome<Result = unknown> {
  readonly agentId: string;
  readonly outcome: OutcomeKind;
  /** Of `ok`; otherwise null. */
  readonly result: Result | null;
  /** Why it is not `ok`; otherwise null. */
  readonly error: string | null;
  /** When it was known, ISO 8601. */
  readonly at: string;
}

export interface RolloutOptions<Result = unknown> {
  /**
   * A share, more than 0 and at most 1: first that share of the agents, then 10, 20, 40 and 100 %,
   * each only if the outcomes of the one before were well: at most `abortOver` of them not ok. By
   * default all at once.
   */
  readonly staged?: number;
  /**
   * Starts nothing more once over this share of all outcomes so far is not ok, from 20 outcomes on.
   * By default nothing stops it but `staged`.
   */
  readonly abortOver?: number;
  /** From how many outcomes on `abortOver` counts; 20 by default. */
  readonly abortFrom?: number;
  /** How many agents are worked on at once; 32 by default. */
  readonly atOnce?: number;
  /** Starts nothing more; what has begun is completed, and the others have no outcome. */
  readonly signal?: AbortSignal;
  /** Outcomes of an earlier run, which count, and whose agents are left out. */
  readonly before?: readonly FleetOutcome<Result>[];
  /** Which outcomes are well: only `ok`, by default. */
  readonly isWell?: (outcome: FleetOutcome<Result>) => boolean;
}

const STAGES = [0.1, 0.2, 0.4, 1];
const ABORT_FROM = 20;
const AT_ONCE = 32;

const isShare = (share: number): boolean => share > 0 && share <= 1;

const checkRollout = ({
  staged,
  abortOver,
  atOnce,
}: Pick<RolloutOptions, "staged" | "abortOver" | "atOnce">): void => {
  const refuse = (text: string): never => {
    throw new CallError("BAD_ARGUMENT", text);
  };
  if (staged !== undefined && !isShare(staged)) refuse("staged is more than 0 and at most 1");
  if (abortOver !== undefined && abortOver !== 0 && !isShare(abortOver))
    refuse("abortOver is from 0 to 1");
  if (atOnce !== undefined && !(Number.isInteger(atOnce) && atOnce >= 1))
    refuse("atOnce is a whole number from 1");
};

/** How many of `count` agents have had their turn after each stage. */
export const stagesOf = (count: number, staged: number | undefined): number[] => {
  const shares = staged === undefined ? [1] : [staged, ...STAGES.filter((share) => share > staged)];
  const ends = shares.map((share) => Math.max(1, Math.ceil(count * share - 1e-9)));
  return count === 0 ? [] : [...new Set(ends)];
};

const percent = (share: number): string => `${Math.round(share * 1000) / 10}%`;

/** How many there are of each: `18 ok, 2 offline`; "" of none. */
export const outcomesText = (outcomes: readonly FleetOutcome[]): string => {
  const counts = new Map<OutcomeKind, number>();
  for (const { outcome } of outcomes) counts.set(outcome, (counts.get(outcome) ?? 0) + 1);
  return [...counts].map(([outcome, count]) => `${count} ${outcome}`).join(", ");
};

/** An outcome that is known now. An error loses the agent's id at its beginning. */
export const outcomeOf = <Result = never>(
  agentId: string,
  outcome: OutcomeKind,
  error: string | null,
  result: Result | null = null,
): FleetOutcome<Result> => ({
  agentId,
  outcome,
  result,
  error: error?.startsWith(`${agentId}: `) ? error.slice(agentId.length + 2) : error,
  at: new Date().toISOString(),
});

/**
 * Does `work` once for each agent, and yields each outcome as it is known. Agents that are not
 * begun because it was stopped are `skipped`, with the reason. `work` must not reject; if it does,
 * nothing more is begun, and this throws the same.
 */
export async function* rollOut<Result>(
  agents: readonly string[],
  work: (agentId: string) => Promise<FleetOutcome<Result>>,
  options: RolloutOptions<Result> = {},
): AsyncGenerator<FleetOutcome<Result>, void> {
  checkRollout(options);
  // A relay's list may have an agent twice: that must not make a call run twice.
  const agentIds = [...new Set(agents)];
  const { staged, abortOver, abortFrom = ABORT_FROM, atOnce = AT_ONCE, signal } = options;
  const { before = [], isWell = ({ outcome }) => outcome === "ok" } = options;
  const known = new Map(before.map((outcome) => [outcome.agentId, isWell(outcome)]));
  let bad = [...known.values()].filter((well) => !well).length;
  let stopped: string | null = null;
  const judge = (): void => {
    if (abortOver === undefined || stopped !== null || known.size < abortFrom) return;
    if (bad > abortOver * known.size)
      stopped = `stopped: ${bad} of ${known.size} outcomes were not ok, over ${percent(abortOver)}`;
  };
  judge();
  let from = 0;
  for (const end of stagesOf(agentIds.length, staged)) {
    const stage = agentIds.slice(from, end);
    const left = stage.filter((id) => !known.has(id));
    const done: (() => FleetOutcome<Result>)[] = [];
    let running = 0;
    let wake = (): void => undefined;
    const settle = (one: () => FleetOutcome<Result>): void => {
      done.push(one);
      wake();
    };
    while (running > 0 || left.length > 0) {
      while (running < atOnce && left.length > 0 && stopped === null && !signal?.aborted) {
        running++;
        work(left.shift() as string).then(
          (outcome) => settle(() => outcome),
          (error) =>
            settle(() => {
              throw error;
            }),
        );
      }
      if (running === 0) break;
      if (done.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      const outcome = (done.shift() as () => FleetOutcome<Result>)();
      running--;
      known.set(outcome.agentId, isWell(outcome));
      if (!isWell(outcome)) bad++;
      judge();
      yield outcome;
    }
    if (signal?.aborted) return;
    for (const id of left) yield outcomeOf<Result>(id, "skipped", stopped);
    from = end;
    const badHere = stage.filter((id) => known.get(id) === false).length;
    if (stopped === null && end < agentIds.length && badHere > (abortOver ?? 0) * stage.length) {
      const limit = abortOver === undefined ? "" : `, over ${percent(abortOver)}`;
      stopped = `stopped: ${badHere} of the ${stage.length} agents of a stage were not ok${limit}`;
    }
  }
}

export interface FleetCallOptions extends RolloutOptions {
  /** Of each call; see CallOptions. */
  readonly timeoutMs?: number;
  /** The agents may execute it twice, so it is repeated where its outcome is unknown. */
  readonly idempotent?: boolean;
  /** Wait for agents that are offline until the deadline. */
  readonly waitForAgent?: boolean;
  /**
   * Awaited before the call goes out to an agent, which is reachable then: for a record that must
   * not be behind. If it rejects, the call is not sent, and the iteration ends with that error.
   */
  readonly sending?: (agentId: string) => void | Promise<void>;
}

/** What a fleet needs of an agent. */
interface Callable {
  call(
    method: string,
    params: unknown,
    options: { timeoutMs: number; idempotent: boolean; waitForAgent?: boolean },
  ): Promise<unknown>;
}

type AgentOf = (agentId: string) => Callable | null | Promise<Callable | null>;

/** Not sent, and nothing that another attempt would change. */
const REFUSALS: readonly string[] = ["AGENT_NOT_FOUND", "REFUSED", "BAD_ARGUMENT", "TOO_LARGE"];

const outcomeOfError = (id: string, error: unknown, sent: boolean, idempotent: boolean) => {
  if (!(error instanceof CallError)) throw error;
  const { code, message, retryable } = error;
  if (code === "REMOTE" || code === "BAD_ANSWER") return outcomeOf(id, "error", message);
  if (REFUSALS.includes(code)) return outcomeOf(id, "skipped", message);
  // The SDK knows that it never left, or the agent has said that it did not run.
  if (!sent || (retryable && !idempotent)) return outcomeOf(id, "offline", message);
  return outcomeOf(id, "unknown", message);
};

/** Agents that are called as one. */
export class Fleet {
  private readonly list: () => Promise<readonly string[]>;
  private readonly agentOf: AgentOf;

  /** Created by `Client.fleet`. `agentOf`: null if its secret is not known here. */
  constructor(list: () => Promise<readonly string[]>, agentOf: AgentOf) {
    this.list = list;
    this.agentOf = agentOf;
  }

  /**
   * Calls a method of each agent, and yields an outcome for each as it is known. Each agent is
   * reached by a ping first, so that an agent that is away is `offline` and not `unknown`. A call
   * that may have run is not sent twice unless it is `idempotent`. Throws a CallError BAD_ARGUMENT
   * for invalid options, and whatever the listing of the agents throws.
   */
  async *call<Result = unknown>(
    method: string,
    params?: unknown,
    options: FleetCallOptions = {},
  ): AsyncGenerator<FleetOutcome<Result>, void> {
    const { timeoutMs = CALL_TIMEOUT_MS, idempotent = false, waitForAgent = false } = options;
    const one = async (id: string): Promise<FleetOutcome<Result>> => {
      const deadline = performance.now() + timeoutMs;
      const left = (): number => Math.max(1, deadline - performance.now());
      let sent = false;
      try {
        const agent = await this.agentOf(id);
        if (agent === null) return outcomeOf(id, "skipped", "its secret is not known here");
        const reach = { timeoutMs: left(), idempotent: true, waitForAgent };
        await agent.call("system.ping", undefined, reach);
        await options.sending?.(id);
        sent = true;
        const result = await agent.call(method, params, { timeoutMs: left(), idempotent });
        return outcomeOf(id, "ok", null, result as Result);
      } catch (error) {
        return outcomeOfError(id, error, sent, idempotent);
      }
    };
    yield* rollOut(await this.list(), one, options as RolloutOptions<Result>);
  }
}
