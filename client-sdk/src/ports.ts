/**
 * The only way out of the client's core: a link to the relay, time, randomness, crypto, a log.
 * Each runtime's edge (node/, browser/) fills these; tests fill them with a virtual clock. The
 * shapes are those of agent-sdk, so one in-memory world can hold both ends.
 */
import type { Suite } from "@blindrelay/protocol/crypto";

/** One live connection to the relay. */
export interface Link {
  /** Queues one text message. Does nothing once the connection is gone. */
  send(text: string): void;
  close(code: number, reason: string): void;
}

/** What a connection tells its owner. */
export interface LinkEvents {
  opened(): void;
  /** One whole text message. */
  received(text: string): void;
  /** Comes exactly once, also when it never opened, and never synchronously inside `connect`. */
  closed(code: number, reason: string): void;
}

export interface LinkPort {
  connect(url: string, events: LinkEvents): Link;
}

export interface TimerPort {
  /** Milliseconds, monotonic; the origin does not matter. */
  now(): number;
  /** Calls `fn` once after `ms` milliseconds; the result is for `clear`. */
  set(ms: number, fn: () => void): unknown;
  clear(handle: unknown): void;
}

/** `length` unpredictable bytes. */
export type Random = (length: number) => Uint8Array;

/** Receives no secret and no plaintext. */
export type Log = (
  level: "debug" | "info" | "warn" | "error",
  message: string,
  fields?: object,
) => void;

export interface Ports {
  readonly link: LinkPort;
  readonly timer: TimerPort;
  readonly random: Random;
  readonly suite: Suite;
  readonly log: Log;
}
