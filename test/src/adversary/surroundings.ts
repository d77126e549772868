/** The environment of devices and people in a world. */
import type { TimerPort } from "@blindrelay/agent-sdk";
import type { Suite, Version } from "@blindrelay/protocol/crypto";
import type { CallOracle } from "@blindrelay/simulator/testing";
import type { Build } from "./build.ts";
import type { Wishes } from "./pushed-slots.ts";
import type { MaliciousRelay, Party } from "./relay.ts";
import type { SessionOracle } from "./session-oracle.ts";

/** A device with an agent, and what can happen to it. */
export interface DeviceUnderAttack extends Party {
  readonly version: Version;
  readonly agentToken: string;
  /** For one that accepts programs: what people requested of it. */
  readonly wishes?: Wishes;
  /** An event to every session held. */
  emit(): void;
  restart(): void;
  /** Off, then on, with a power cut in the `step`-th step of the boot-count write; then on. */
  restartWithCut(step: number): void;
  /** The medium is empty afterwards, as from a board whose flash was erased. */
  loseMedium(): void;
  /** Provisioned with another secret, and with its own again. */
  undoRotation(): void;
  /** Replaces one of the two slots with `text`; null: it is gone. */
  damageSlot(slot: number, text: string | null): void;
}

export interface Surroundings {
  readonly relay: MaliciousRelay;
  readonly calls: CallOracle;
  makeTimer(alive: () => boolean): TimerPort;
  violate(what: string): void;
}

/** In addition, what a device on the real agent core needs. */
export interface DeviceSurroundings extends Surroundings {
  readonly build: Build;
  readonly sessions: SessionOracle;
  makeSuite(): Suite;
  tokenChanged(device: DeviceUnderAttack): void;
}
