/** What the fleet's process and its parent say to each other, over Node's IPC channel. */
import type { Fault } from "../scenario/schema.ts";
import type { BoardEngine, BoardsOptions } from "./boards.ts";
import type { Missing } from "./fleet.ts";
import type { Shape } from "./shaped-link.ts";

export interface FleetOrder {
  url: string;
  connectionsPerSecond: number;
  /** Of what is drawn while it runs. */
  seed: number;
  /** Device programs: files, or `kind:NAME` for a bundled one. */
  programs: string[];
  /** Counts what the programs on Node execute. */
  countsExecutions?: boolean;
  /** Paths of the boards' engines, where a device needs one. */
  engines?: BoardsOptions["engines"];
  agents: OrderedAgent[];
}

export interface OrderedAgent {
  id: string;
  name: string;
  relayToken: string;
  agentToken: string;
  /** Index into `programs`. */
  program: number;
  version?: "1" | "2";
  startMs?: number;
  /** A network of its own; faults need one. */
  shape?: Shape;
  restarts?: boolean;
  /** Of a board, in place of Node. */
  engine?: BoardEngine;
}

/** `agents`: indices into the order's. */
export type FleetStep = { agents: number[] } & (
  | { do: "play"; fault: Fault; on: boolean }
  | { do: "power off" }
  /** By agent, as `agents` has them; new secrets are for those that lost their storage. */
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
   * `executed`: handler runs by agent, where they are counted.
   */
  | ({
      type: "report";
      missing: Missing[];
      rssBytesPerAgent: number | null;
      executed: Record<string, number>;
    } & FleetProgress);
