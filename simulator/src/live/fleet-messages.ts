/** The messages between the fleet's process and its parent, over Node's IPC channel. */
import type { Fault } from "../scenario/schema.ts";
import type { BoardEngine, BoardsOptions } from "./boards.ts";
import type { Identity, Missing } from "./fleet.ts";
import type { Shape } from "./shaped-link.ts";

export interface FleetOrder {
  url: string;
  connectionsPerSecond: number;
  /** For what is drawn while it runs. */
  seed: number;
  /** Of the devices' local time. */
  timezone: string;
  /** Device programs: files, or `kind:NAME` for a bundled one. */
  programs: string[];
  /** A file of stubs: the devices' hardware. */
  stubs?: string;
  /** Counts handler runs of programs on Node. */
  countsExecutions?: boolean;
  /** Paths of the boards' engines, if a device needs one. */
  engines?: BoardsOptions["engines"];
  agents: OrderedAgent[];
}

export interface OrderedAgent extends Identity {
  /** Index into `programs`. */
  program: number;
  version?: "1" | "2";
  startMs?: number;
  /** A separate network; required for faults. */
  shape?: Shape;
  restarts?: boolean;
  /** A board's engine, instead of Node. */
  engine?: BoardEngine;
}

/** `agents`: indices into the order's agents. */
export type FleetStep = { agents: number[] } & (
  | { do: "play"; fault: Fault; on: boolean }
  | { do: "power off" }
  /** In the order of `agents`; new secrets are for those that lost their storage. */
  | { do: "power on"; agentTokens?: string[]; relayTokens?: string[] }
);

export type ToFleet =
  | { type: "start"; order: FleetOrder }
  | { type: "report" }
  | { type: "step"; step: FleetStep }
  | { type: "stop" };

export interface FleetProgress {
  connected: number;
  /** Agents that were connected at some time. */
  ever: number;
  logins: number;
}

export type FromFleet =
  | ({ type: "progress" } & FleetProgress)
  /**
   * The answer to `report`. `rssBytesPerAgent`: what connecting added to this process; null before.
   * `executed`: handler runs by agent, if they are counted.
   */
  | ({
      type: "report";
      missing: Missing[];
      rssBytesPerAgent: number | null;
      executed: Record<string, number>;
    } & FleetProgress);
