/**
 * What the cores of agents and clients need from their runtime. Each runtime implements these ports
 * in one small edge; tests use a virtual clock. Crypto is a port too: Suite (crypto/suite.ts).
 *
 * [portable] types only, nothing is left of this file at run time.
 */

/** One live connection to the relay. */
export interface Link {
  /** Queues one text message. After `close` or `closed` it does nothing. */
  send(text: string): void;
  /**
   * Ends the link; `closed` still follows, once. `code` is 1000 or 3000-4999 (RFC 6455 section
   * 7.4).
   */
  close(code: number, reason: string): void;
  /**
   * Bytes that are queued and that the network has not accepted yet, if the runtime can tell. The
   * core then waits before it adds more.
   */
  queuedBytes?(): number;
}

/** What a link reports. None of these is called from inside `connect`, `send` or `close`. */
export interface LinkEvents {
  /** The WebSocket is open. At most once. */
  opened(): void;
  /** One complete text message, in the order sent; only between `opened` and `closed`. */
  received(text: string): void;
  /**
   * Exactly once for every `connect`, even if the link never opened; nothing is reported after it.
   * If it never opened, `reason` is the edge's word about that, for a person, or empty.
   */
  closed(code: number, reason: string): void;
}

export interface LinkPort {
  connect(url: string, events: LinkEvents): Link;
}

export interface TimerPort {
  /** Milliseconds of a monotonic clock with an arbitrary zero. */
  now(): number;
  /** See ElapsedClock. Absent: 0. */
  leapt?(): number;
  /** Calls `fn` once, not before `ms` milliseconds have passed and never from inside `set`. */
  set(ms: number, fn: () => void): unknown;
  /** Cancels what `set` returned; harmless after it has fired. */
  clear(handle: unknown): void;
}

/**
 * Returns `length` random bytes. Nothing relies on them for freshness: some boards return the same
 * bytes after every reset.
 */
export type Random = (length: number) => Uint8Array;

export type LogLevel = "debug" | "info" | "warn" | "error";

/**
 * Writes a line for the operator of the device, never with secrets or plaintext. `thrown`: what a
 * device program threw, for runtimes that can show its stack.
 */
export type Log = (level: LogLevel, message: string, fields?: object, thrown?: unknown) => void;
