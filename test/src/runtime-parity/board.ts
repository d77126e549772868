/** A board as the tests see it, whatever runs on it. */
import { randomBytes } from "node:crypto";
import { isForward, type Version } from "@blindrelay/protocol/crypto";
import type { Credentials } from "../xs/relay-fixture.ts";
import type { ProgramName } from "./programs.ts";

/** What a board is provisioned with beside its secret; undefined under "1" and "2". */
export const drawSeed = (version: Version): string | undefined =>
  isForward(version) ? randomBytes(32).toString("base64url") : undefined;

/** The contents for a board. */
export interface Installation {
  readonly credentials: Credentials;
  readonly version: Version;
  readonly program: ProgramName;
}

export interface ParityBoard {
  /** Installs it on a board that was never used. */
  install(installation: Installation): Promise<void>;
  /** Writes the first boot count; rejects with the advice if it was written before. */
  provision(): Promise<void>;
  /** Resolves when it is online; rejects with the advice if the agent does not start. */
  powerOn(): Promise<void>;
  /** Simulates a power cut. */
  powerOff(): Promise<void>;
  /** Makes the boot count unreadable. */
  spoil(): Promise<void>;
  /** Powers off and erases everything. */
  end(): Promise<void>;
}

export interface Runtime {
  /** Includes the reason if it is skipped. */
  readonly title: string;
  readonly isThere: boolean;
  /** The expected system.info. */
  readonly runtime: RegExp;
  readonly maxPlaintext: number;
  /** Bytes of one message, if that is less than the relay's own limit. */
  readonly maxMessage: number | null;
  /** Levels of a call's params, if the engine cannot take any number. */
  readonly maxNesting?: number;
  readonly versions: readonly Version[];
  /** Espruino, or what imitates it. */
  readonly isEspruino: boolean;
  /** It has few variables, and may run out of them. */
  readonly tight: boolean;
  make(): Promise<ParityBoard>;
}
