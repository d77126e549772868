/** Messages between the processes of `npm run rolling`, over Node's IPC channel. */
export interface AgentKeys {
  readonly id: string;
  readonly relayToken: string;
  readonly agentToken: string;
}

/** The first message of the parent to each. */
export interface Order {
  readonly url: string;
  readonly folder: string;
  readonly accountToken: string;
  readonly agents: readonly AgentKeys[];
  /** How many of the agents hold only one link, as boards do. */
  readonly boards: number;
  readonly clients: number;
  readonly callsPerSecond: number;
}

/** The parent's later messages; each is answered by a report, which resets all figures. */
export type Ask = "report" | "stop";

export interface AgentsReport {
  readonly online: number;
  /** How often each call was executed. */
  readonly runs: readonly (readonly [call: number, times: number])[];
  /** Milliseconds without a link, for each interruption of an agent. */
  readonly withoutLink: readonly number[];
  /** The same for those that can hold only one link. */
  readonly boardsWithoutLink: readonly number[];
  /**
   * Milliseconds in which an agent with a link could not send, because it logged in on another
   * node.
   */
  readonly moving: readonly number[];
}

/** How calls ended, by code; those that may be repeated are marked by `*`. */
export type Outcomes = Record<string, number>;

/** Whether calls of this number are marked idempotent: every second one is. */
export const isIdempotent = (call: number): boolean => call % 2 === 0;

export interface ClientsReport {
  readonly sent: number;
  readonly plain: Outcomes;
  readonly idempotent: Outcomes;
  /** Answered calls. */
  readonly answered: readonly number[];
  /** More than a second past the deadline. */
  readonly late: number;
  readonly latencies: readonly number[];
  /** `agent_status` messages that report an agent offline. */
  readonly flaps: number;
  /** Examples of unanswered calls. */
  readonly examples: readonly string[];
}

/** Answers the parent; `report` is called for each of its requests. */
export const serve = (start: (order: Order) => Promise<() => object>): void => {
  let report: (() => object) | null = null;
  process.on("message", async (message: Order | Ask) => {
    if (message === "stop") process.exit();
    if (message === "report") process.send?.(report?.() ?? {});
    else {
      report = await start(message);
      process.send?.("ready");
    }
  });
  process.on("disconnect", () => process.exit());
};
