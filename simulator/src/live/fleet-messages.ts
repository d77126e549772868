/** The messages between a fleet's process and its parent, over Node's IPC channel. */
import type { Version } from "@blindrelay/protocol/crypto";
import type { FailureCount } from "../report/report.ts";
import type { Fault } from "../scenario/schema.ts";
import type { BoardEngine, BoardsOptions } from "./boards.ts";
import type { Identity, Missing } from "./fleet.ts";
import type { Changed } from "./outages.ts";
import type { Shape } from "./shaped-link.ts";

export interface FleetOrder {
  url: string;
  connectionsPerSecond: number;
  connectingAtOnce: number;
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
  version?: Version;
  startMs?: number;
  /** A separate network; required for faults. */
  shape?: Shape;
  restarts?: boolean;
  /** A board's engine, instead of Node. */
  engine?: BoardEngine;
  /** Those of a board, instead of Node's. */
  limits?: "board";
}

export type FleetStep = { targets: FleetTarget[] } & (
  | { do: "play"; fault: Fault; on: boolean }
  | { do: "power off" | "power on" }
);

export interface FleetTarget {
  /** Index into the order's agents. */
  agent: number;
  /** With its power. */
  changed?: Changed;
}

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
   * The answer to `report`. `rssBytes`: what connecting added to this process; null with boards,
   * whose engines do not count as the cost of a device on Node. `executed`: handler runs by agent,
   * if they are counted.
   */
  | ({
      type: "report";
      /** What programs threw and did not catch. */
      uncaught: FailureCount[];
      missing: Missing[];
      rssBytes: number | null;
      executed: Record<string, number>;
    } & FleetProgress);
