/**
 * The parts of an attacked board: an engine that runs the agent, and a flash that outlives its
 * lives.
 */
import type { LinkPort, TimerPort } from "@blindrelay/agent-sdk";
import type { Version } from "@blindrelay/protocol/crypto";

/** The agent's configuration. */
export interface Identity {
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
  readonly version: Version;
  /** For packet versions "3" and "4", base64url of 32 bytes: new whenever it is provisioned. */
  readonly seed?: string | undefined;
}

export interface HardwareSurroundings {
  readonly timer: TimerPort;
  /** The handler of the device program (program.ts) ran, for a call with this marker. */
  readonly executed: (marker: unknown) => void;
}

export interface Hardware {
  /** Power on; the agent does not run yet. `network`: the destination of its link in this life. */
  powerOn(network: LinkPort): void;
  /** Writes the first boot count of a new agent_token. Throws the agent's error. */
  provision(identity: Identity): void;
  /** Starts the agent with the device program. Throws the agent's error. */
  start(identity: Identity): void;
  /** Has the agent send an event to every session held. */
  emit(event: string, data: object): void;
  /** At once: nothing of this start runs or is received again. */
  powerOff(): void;
  /**
   * A life with a power cut in the `step`-th step of what it writes at its start, counted from 1.
   */
  startWithCut(identity: Identity, step: number): void;
  /** Both slots of the boot count are gone. */
  eraseFlash(): void;
  /** One slot becomes unreadable, or is lost. */
  damageSlot(slot: number, gone: boolean): void;
  /** Ends it permanently; waits for what ends later. */
  end(): Promise<void>;
}

export type MakeHardware = (surroundings: HardwareSurroundings) => Hardware;

/** A network without answers, for a life too short to use it. */
export const DEAD_NETWORK: LinkPort = {
  connect: () => ({ send: () => undefined, close: () => undefined }),
};
