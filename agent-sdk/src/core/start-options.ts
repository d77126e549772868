/**
 * The options of a start that all runtimes share; each adds the relay's address in its own form.
 *
 * [portable] types only, nothing is left of this file at run time.
 */
import type { Version } from "@blindrelay/protocol/crypto";
import type { AgentSessionLimits } from "@blindrelay/protocol/session";
import type { Program } from "./agent.ts";
import type { Forward } from "./forward.ts";
import type { KeepLog } from "./give-log.ts";
import type { RekeyedParts, RekeyedStart } from "./give-rekey.ts";

export interface AgentIdentity {
  readonly agentId: string;
  /** `agt_`: identifies this agent to the relay. */
  readonly relayToken: string;
  /** `e2e_`: the secret that its clients share with it. Never give two devices the same one. */
  readonly agentToken: string;
  /** Defaults to "1". "3" and "4" need X25519: on a small device the option `forward`. */
  readonly packetVersion?: Version;
  /**
   * The private half of the key that clients pin under "3" and "4", base64url of 32 bytes. Absent:
   * who has the agentToken can be this device.
   */
  readonly deviceKey?: string | undefined;
  /** A name for people; defaults to the agentId. */
  readonly name?: string;
  /** The running program's version, as SemVer; sent to the relay at every login. */
  readonly firmwareVersion?: string;
  /** Of sessions, and of the work that peers without the secret can cause; see docs/runtimes.md. */
  readonly limits?: Partial<AgentSessionLimits>;
}

/** The start option `rekey` of small devices. */
export type Rekey = (
  ports: Pick<RekeyedParts, "storage" | "suite" | "log">,
  agentId: string,
  configured: string,
) => RekeyedStart;

/** The options of a small device. */
export interface DeviceOptions extends AgentIdentity {
  readonly program: Program;
  /** What speaks packet versions "3" and "4", a module of its own; absent: "1" and "2" only. */
  readonly forward?: Forward;
  /**
   * Lets whoever has the agentToken replace it over the relay, as `rekey()` makes it, a module of
   * its own; absent: nobody can.
   */
  readonly rekey?: Rekey;
  /** For example the chip's number; helps to make epochs differ. */
  readonly serialNumber?: string;
  /** Returns free bytes of memory, which `system.info` reports; absent: it reports null. */
  readonly freeMemory?: () => number;
  /**
   * The largest call or answer, in bytes: 8,192 unless set, at most 47,000. Handling one takes some
   * six times as much heap. It also bounds the relay's messages, and the values in a call, one for
   * eight bytes, as an empty array of two takes 64.
   */
  readonly maxPlaintext?: number;
  /** What keeps the device's log, as `keepLog()` makes it; absent: none is kept. */
  readonly keepLog?: KeepLog;
  /** Levels of arrays and objects in a message or call: 8 unless set; each costs C stack. */
  readonly maxNesting?: number;
  /**
   * Bytes of property names that calls may bring, each with 40 more, where the engine never frees
   * one: 4,096 on Moddable unless set. Absent elsewhere: no limit.
   */
  readonly keptNames?: number;
}
