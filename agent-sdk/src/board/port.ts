/**
 * A port with a board's prompt behind it, as everything here needs it: Node's serial ports and
 * addresses, a browser's Web Serial, and a double of a board implement it.
 */

export interface ReplPortEvents {
  received(bytes: Uint8Array): void;
  /** At most once; not after `close`. */
  closed(reason: string): void;
}

export const wait = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));

/** Limit of what waits in the system's buffer. */
const MAX_AHEAD_MS = 4;

/**
 * Makes bytes leave no faster than the line takes them, because XOFF does not stop what is in the
 * system's buffer. `byteMs`: what one takes, 0 for no limit. The function that it returns is called
 * with the number of bytes just written, and resolves when the next may follow.
 */
export const paced = (byteMs: number): ((count: number) => Promise<void>) => {
  let sentAt = 0;
  return async (count) => {
    sentAt = Math.max(sentAt, performance.now()) + count * byteMs;
    const aheadMs = sentAt - performance.now();
    if (aheadMs >= MAX_AHEAD_MS) await wait(aheadMs);
  };
};

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
