/**
 * A live fleet, in one process or in several that share its agents, because a process has one core.
 * Agents are dealt out in turn, so that each process has a share of each group.
 */
import type { FailureCount } from "../report/report.ts";
import type { Missing } from "./fleet.ts";
import { type FleetChild, startFleetChild } from "./fleet-child.ts";
import type { FleetOrder, FleetStep } from "./fleet-messages.ts";

export interface FleetReport {
  /** Agents that are logged in. */
  connected: number;
  missing: Missing[];
  /** What programs threw and did not catch. */
  uncaught: FailureCount[];
  /** Handler runs by agent. */
  executed: Record<string, number>;
  /** What connecting added to the processes; null if there are boards. */
  rssBytesPerAgent: number | null;
}

export class FleetChildren {
  /** Resolves once all processes have started their agents. */
  readonly started: Promise<unknown>;
  /** Resolves once each agent was online at some time. */
  readonly whole: Promise<unknown>;
  /** Which process ended first, and how; also after a `stop`. */
  readonly ended: Promise<string>;
  private readonly children: readonly FleetChild[];
  /** Agents. */
  private readonly size: number;

  /**
   * Starts connecting, in at most so many `processes`. `folder`: for files of boards' engines.
   */
  constructor(order: FleetOrder, processes: number, folder: string) {
    const { length: size } = order.agents;
    this.size = size;
    this.children = sharesOf(order, Math.min(processes, size)).map((share) =>
      startFleetChild(share, folder),
    );
    this.started = Promise.all(this.children.map(({ started }) => started));
    this.whole = Promise.all(this.children.map(({ whole }) => whole));
    this.ended = Promise.race(
      this.children.map(async ({ pid, ended }) => `process ${pid} ended (${await ended})`),
    );
  }

  get pids(): number[] {
    return this.children.map(({ pid }) => pid);
  }

  /** Agents logged in a tenth of a second ago. */
  connected(): number {
    return this.sum((child) => child.connected());
  }

  /** Agents that were logged in at some time. */
  everConnected(): number {
    return this.sum((child) => child.everConnected());
  }

  /** The total number of logins. */
  logins(): number {
    return this.sum((child) => child.logins());
  }

  /** Makes some of the agents do something. */
  take(step: FleetStep): void {
    const { length: count } = this.children;
    this.children.forEach((child, k) => {
      const targets = step.targets.filter(({ agent }) => agent % count === k);
      if (targets.length === 0) return;
      child.take({
        ...step,
        targets: targets.map((target) => ({ ...target, agent: Math.floor(target.agent / count) })),
      });
    });
  }

  /** Null if a process has ended or hangs. */
  async report(): Promise<FleetReport | null> {
    const uncaught: FailureCount[] = [];
    const whole = { connected: 0, missing: [] as Missing[], uncaught, executed: {} };
    let rssBytes: number | null = 0;
    for (const share of await Promise.all(this.children.map((child) => child.report()))) {
      if (share === null) return null;
      whole.connected += share.connected;
      whole.missing.push(...share.missing);
      uncaught.push(...share.uncaught);
      Object.assign(whole.executed, share.executed);
      if (share.rssBytes === null) rssBytes = null;
      else if (rssBytes !== null) rssBytes += share.rssBytes;
    }
    const rssBytesPerAgent = rssBytes === null ? null : Math.round(rssBytes / this.size);
    return { ...whole, rssBytesPerAgent };
  }

  async stop(): Promise<void> {
    await Promise.all(this.children.map((child) => child.stop()));
  }

  private sum(of: (child: FleetChild) => number): number {
    return this.children.reduce((sum, child) => sum + of(child), 0);
  }
}

/** They also share what the relay has to answer. */
function sharesOf(order: FleetOrder, count: number): FleetOrder[] {
  return Array.from({ length: count }, (_, k) => ({
    ...order,
    connectionsPerSecond: order.connectionsPerSecond / count,
    connectingAtOnce: Math.ceil(order.connectingAtOnce / count),
    agents: order.agents.filter((_, n) => n % count === k),
  }));
}
