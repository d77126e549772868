/** What the processes of `npm run rolling` say to each other, over Node's IPC channel. */
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
  /** How many of the agents hold one link only, as boards do. */
  readonly boards: number;
  readonly clients: number;
  readonly callsPerSecond: number;
}

/** The parent's later messages; each is answered by a report, which starts all figures anew. */
export type Ask = "report" | "stop";

export interface AgentsReport {
  readonly online: number;
  /** How often each call was run. */
  readonly runs: readonly (readonly [call: number, times: number])[];
  /** Milliseconds without a link, each time an agent had none. */
  readonly withoutLink: readonly number[];
  /** The same of those that can hold one link only. */
  readonly boardsWithoutLink: readonly number[];
  /** Milliseconds in which an agent that had a link could not send, as it logged in elsewhere. */
  readonly moving: readonly number[];
}

/** How calls ended, by code; one that may be made again is marked by `*`. */
export type Outcomes = Record<string, number>;

/** Whether calls of this number are marked idempotent: every second one is. */
export const isIdempotent = (call: number): boolean => call % 2 === 0;

export interface ClientsReport {
  readonly sent: number;
  readonly plain: Outcomes;
  readonly idempotent: Outcomes;
  /** Calls that were answered. */
  readonly answered: readonly number[];
  /** Past the deadline by more than a second. */
  readonly late: number;
  readonly latencies: readonly number[];
  /** `agent_status` of an agent that is offline. */
  readonly flaps: number;
  /** Examples of what was not answered. */
  readonly examples: readonly string[];
}

/** Answers the parent; `report` is called for each of its questions. */
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
