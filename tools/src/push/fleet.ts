/**
 * Pushes one program to many agents, in groups: the next group begins when every agent of the
 * previous one has kept the program, or accepts none. A failed trial, or an agent that does not
 * come back, ends the push.
 */
import { Failure } from "@blindrelay/protocol/command-line";
import { TakesNone } from "./push-one.ts";

export interface FleetReport {
  readonly kept: string[];
  readonly unchanged: string[];
  readonly failed: { readonly agent_id: string; readonly reason: string }[];
  /** They do not accept programs. */
  readonly skipped: { readonly agent_id: string; readonly reason: string }[];
  /** Not started, because others had failed. */
  readonly untouched: string[];
}

export const emptyReport = (): FleetReport => ({
  kept: [],
  unchanged: [],
  failed: [],
  skipped: [],
  untouched: [],
});

/** Concurrent pushes in a group: each is a separate session on this machine and on the relay. */
const AT_ONCE = 16;

/** Groups of this share of all agents (more than 0, at most 1), each with at least one. */
export const groupsOf = (agentIds: readonly string[], share: number): string[][] => {
  const size = Math.max(1, Math.ceil(agentIds.length * share - 1e-9));
  const groups: string[][] = [];
  for (let at = 0; at < agentIds.length; at += size) groups.push(agentIds.slice(at, at + size));
  return groups;
};

/**
 * `push`: whether the agent already ran it; rejects with a Failure. `told`: called after each
 * agent. Rejects with any other error.
 */
export const pushFleet = async (
  groups: readonly (readonly string[])[],
  push: (agentId: string) => Promise<{ readonly unchanged: boolean }>,
  told: (report: FleetReport) => void,
): Promise<FleetReport> => {
  const report = emptyReport();
  const one = async (agentId: string): Promise<void> => {
    try {
      const { unchanged } = await push(agentId);
      (unchanged ? report.unchanged : report.kept).push(agentId);
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      const list = error instanceof TakesNone ? report.skipped : report.failed;
      list.push({ agent_id: agentId, reason: error.message });
    }
    told(report);
  };
  for (const group of groups) {
    const left = [...group];
    const worker = async (): Promise<void> => {
      while (left.length > 0 && report.failed.length === 0) await one(left.shift() as string);
    };
    if (report.failed.length === 0) await Promise.all(group.slice(0, AT_ONCE).map(worker));
    report.untouched.push(...left);
  }
  return report;
};
