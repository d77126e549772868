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
  readonly clients: number;
  readonly callsPerSecond: number;
}

/** The parent's later messages; each is answered by a report, which starts all figures anew. */
export type Ask = "report" | "stop";

export interface AgentsReport {
  readonly online: number;
  /** How often each call was run. */
  readonly runs: readonly (readonly [call: number, times: number])[];
  /** Milliseconds in which an agent could send nothing: between two links, or moving. */
  readonly gaps: readonly number[];
  readonly moves: number;
}

export interface ClientsReport {
  readonly sent: number;
  /** How calls ended, by code; one that may be made again is marked by `*`. */
  readonly outcomes: Readonly<Record<string, number>>;
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
