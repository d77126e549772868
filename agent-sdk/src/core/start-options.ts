/**
 * What a start is told on every runtime; each adds the relay's address in its own form.
 *
 * [portable] types only, nothing is left of this file at run time.
 */
import type { Version } from "@blindrelay/protocol/crypto";
import type { Program } from "./agent.ts";

export interface AgentIdentity {
  readonly agentId: string;
  /** `agt_`: what the relay knows this agent by. */
  readonly relayToken: string;
  /** `e2e_`: what its clients know it by. Never shared by two devices. */
  readonly agentToken: string;
  /** "1" where absent. */
  readonly packetVersion?: Version;
  /** For people; the agentId where absent. */
  readonly name?: string;
  /** Of the running program, as SemVer; the relay receives it at every login. */
  readonly firmwareVersion?: string;
}

/** The same of a small device. */
export interface DeviceOptions extends AgentIdentity {
  readonly program: Program;
  /** Such as a chip's own number; part of what makes epochs differ. */
  readonly serialNumber?: string;
  /** Bytes, for system.info. */
  readonly freeMemory?: () => number;
  /** Of one call or answer, in bytes; a device with little memory says less than 47,000. */
  readonly maxPlaintext?: number;
}
