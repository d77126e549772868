/** What the fleet's process and its parent say to each other, over Node's IPC channel. */
import type { Missing } from "./fleet.ts";

export interface FleetOrder {
  url: string;
  connectionsPerSecond: number;
  /** A device program's file, in place of the kinds. */
  program: string | null;
  /** `kind`: index into KINDS, where there is no program. */
  agents: { id: string; name: string; relayToken: string; agentToken: string; kind: number }[];
}

export type ToFleet = { type: "start"; order: FleetOrder } | { type: "report" } | { type: "stop" };

export type FromFleet =
  | { type: "progress"; connected: number }
  /**
   * The answer to `report`. `rssBytesPerAgent`: what connecting added to this process; null before.
   */
  | { type: "report"; connected: number; missing: Missing[]; rssBytesPerAgent: number | null };
