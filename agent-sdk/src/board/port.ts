/**
 * A port with a board's prompt behind it, as everything here needs it: Node's serial ports and
 * addresses, a browser's Web Serial, and a double of a board implement it.
 */

export interface ReplPortEvents {
  received(bytes: Uint8Array): void;
  /** At most once; not after `close`. */
  closed(reason: string): void;
}

export interface Port {
  /** As the user calls it. */
  readonly name: string;
  /** Its listener; replaced when the port is passed on. */
  events: ReplPortEvents;
  /** Resolves when the bytes have had time to be sent. Rejects with a Failure (device). */
  write(bytes: Uint8Array): Promise<void>;
  /** Resolves when it is closed. Harmless when repeated. */
  close(): Promise<void>;
}
