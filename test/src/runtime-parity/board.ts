/** A board as the tests see it, whatever runs on it. */
import type { Version } from "@blindrelay/protocol/crypto";
import type { Credentials } from "../xs/relay-fixture.ts";
import type { ProgramName } from "./programs.ts";

/** What is put on a board. */
export interface Installation {
  readonly credentials: Credentials;
  readonly version: Version;
  readonly program: ProgramName;
}

export interface Board {
  /** Puts it on a board that was never used. */
  install(installation: Installation): Promise<void>;
  /** Writes the first boot count; rejects with the advice where it was written before. */
  provision(): Promise<void>;
  /** Resolves when it is online; rejects with the advice where the agent does not begin. */
  powerOn(): Promise<void>;
  /** As a power cut. */
  powerOff(): Promise<void>;
  /** Makes the boot count unreadable. */
  spoil(): Promise<void>;
  /** Powers off and forgets everything. */
  end(): Promise<void>;
}

export interface Runtime {
  /** Says too why it is skipped, where it is not there. */
  readonly title: string;
  readonly isThere: boolean;
  /** What system.info says. */
  readonly runtime: RegExp;
  readonly maxPlaintext: number;
  /** Bytes of one message, where that is less than the relay's own limit. */
  readonly maxMessage: number | null;
  readonly versions: readonly Version[];
  /** Espruino itself. */
  readonly isEngine: boolean;
  /** It has few variables, and may run out of them. */
  readonly tight: boolean;
  make(): Promise<Board>;
}
