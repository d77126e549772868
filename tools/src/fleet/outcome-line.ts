/** How a command tells the outcome of one agent of many, and how its journal keeps it. */
import type { FleetOutcome, OutcomeKind } from "@blindrelay/client-sdk";
import { jsonText, oneLine } from "../base/output.ts";

/** What `--json` prints. */
export interface OutcomeLine {
  readonly agent_id: string;
  readonly outcome: OutcomeKind;
  readonly result: unknown;
  readonly error: string | null;
  readonly at: string;
}

export const lineOf = ({ agentId, ...rest }: FleetOutcome): OutcomeLine => ({
  agent_id: agentId,
  ...rest,
});

export const lineText = ({ agent_id, outcome, result, error }: OutcomeLine): string =>
  `${agent_id} ${outcome} ${outcome === "ok" ? jsonText(result) : oneLine(error ?? "")}`.trimEnd();
