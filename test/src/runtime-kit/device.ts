/**
 * What a runtime is to the conformance kit: an engine that runs the agent, as a device in this
 * process. Its clock, network, storage and randomness are handed in, so the same device stands on a
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

export interface DeviceSurroundings {
  readonly timer: TimerPort;
  readonly link: LinkPort;
  readonly random: Random;
  /** Outlives the device. A write may throw: the power went. */
  readonly storage: StoragePort;
  /** What the agent logs: the message, and its fields after it as JSON or as the third argument. */
  readonly log: Log;
  readonly onState: (status: AgentStatus) => void;
}

/** What an agent is configured with. */
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
  /** Writes the first boot count of a new agent_token. Throws the advice where it must not. */
  provision(agentToken: string): void;
  /** Starts the program of this name. Throws the advice where the agent must not start. */
  start(config: DeviceConfig, program: string): void;
  /** An event to every session held, as the device program would send it. */
  emit(event: string, data: object): void;
  /**
   * Runs `checkVectors` of `@blindrelay/protocol/testing` inside the engine, with the suite of this
   * runtime, on one file of protocol/vectors; returns its sentences.
   */
  checkVectors(field: string, text: string): string[];
  /** Power off, at once: nothing of it runs or is called again. */
  end(): void;
}

export interface RuntimeUnderTest {
  readonly title: string;
  /** What system.info says it is. */
  readonly runtime: RegExp;
  /** What system.info says is the most that one plaintext may hold. */
  readonly maxPlaintext: number;
  /** Loads the engine with the agent and these programs: name to the file that exports one. */
  load(programs: {
    readonly [name: string]: string;
  }): Promise<(surroundings: DeviceSurroundings) => DeviceUnderTest>;
}
