/**
 * A runtime as the conformance kit sees it: an engine that runs the agent, as a device in this
 * process. Its clock, network, storage and randomness are injected, so the same device can be on a
 * real relay and, under a virtual clock, behind a malicious one.
 */
import type {
  AgentStatus,
  LinkPort,
  Log,
  Random,
  StoragePort,
  TimerPort,
} from "@blindrelay/agent-sdk";
import type { Version } from "@blindrelay/protocol/crypto";

export interface DevicePorts {
  readonly timer: TimerPort;
  readonly link: LinkPort;
  readonly random: Random;
  /** Outlives the device. A write may throw, which simulates a power cut. */
  readonly storage: StoragePort;
  /** The agent's log: the message, with its fields appended as JSON or as the third argument. */
  readonly log: Log;
  readonly onState: (status: AgentStatus) => void;
}

/** An agent's configuration. */
export interface DeviceConfig {
  /** Of the relay's WebSocket. */
  readonly url: string;
  readonly agentId: string;
  readonly relayToken: string;
  readonly agentToken: string;
  readonly packetVersion: Version;
  readonly name?: string;
}

export interface DeviceUnderTest {
  /**
   * Writes the first boot count of a new agent_token. `seed`: for packet versions "3" and "4",
   * base64url of 32 bytes. Throws the advice if it must not.
   */
  provision(agentToken: string, seed?: string): void;
  /** Starts the program of this name. Throws the advice if the agent must not start. */
  start(config: DeviceConfig, program: string): void;
  /** An event to every session held, as the device program would send it. */
  emit(event: string, data: object): void;
  /**
   * Runs `checkVectors` of `@blindrelay/protocol/testing` inside the engine, with the suite of this
   * runtime, on one file of protocol/vectors; returns its sentences. For packet versions "3" and
   * "4" also `checkField` of `@blindrelay/protocol/testing/forward`.
   */
  checkVectors(field: string, text: string): string[];
  /** Power off, at once: nothing of it runs or is called again. */
  end(): void;
}

export interface RuntimeUnderTest {
  readonly title: string;
  /** Its name in system.info. */
  readonly runtime: RegExp;
  /** The largest plaintext, according to system.info. */
  readonly maxPlaintext: number;
  /** Its packet versions. */
  readonly versions: readonly Version[];
  /** Loads the engine with the agent and these programs: name to the file that exports it. */
  load(programs: {
    readonly [name: string]: string;
  }): Promise<(surroundings: DevicePorts) => DeviceUnderTest>;
}
