/**
 * What the cores of agents and clients ask of the runtime around them; each runtime fills these
 * with one small edge, and tests with a virtual clock. Crypto is a port too: Suite
 * (crypto/suite.ts).
 *
 * [portable] types only, nothing is left of this file at run time.
 */

/** One live connection to the relay. */
export interface Link {
  /** Queues one text message. After `close` or `closed` it does nothing. */
  send(text: string): void;
  /**
   * Ends the link; `closed` still comes, once. `code` is 1000 or 3000-4999 (RFC 6455 section 7.4).
   */
  close(code: number, reason: string): void;
  /**
   * Bytes queued and not yet taken by the network, where the runtime knows: the core then stops
   * adding.
   */
  queuedBytes?(): number;
}

/** What a link reports. None of these is called from inside `connect`, `send` or `close`. */
export interface LinkEvents {
  /** The WebSocket is open. At most once. */
  opened(): void;
  /** One complete text message, in the order sent; only between `opened` and `closed`. */
  received(text: string): void;
  /** Exactly once for every `connect`, also where it never opened; nothing is reported after it. */
  closed(code: number, reason: string): void;
}

export interface LinkPort {
  connect(url: string, events: LinkEvents): Link;
}

export interface TimerPort {
  /** Milliseconds of a clock that never goes back; its zero means nothing. */
  now(): number;
  /** Calls `fn` once, not before `ms` milliseconds have passed and never from inside `set`. */
  set(ms: number, fn: () => void): unknown;
  /** Forgets what `set` returned; harmless after it fired. */
  clear(handle: unknown): void;
}

/**
 * `length` random bytes. Never relied on for freshness: some boards give the same after every
 * reset.
 */
export type Random = (length: number) => Uint8Array;

export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * A line for the operator of the device. Never contains secrets or plaintext. `thrown`: what a
 * device program threw, for runtimes that can show its stack.
 */
export type Log = (level: LogLevel, message: string, fields?: object, thrown?: unknown) => void;
