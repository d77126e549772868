/**
 * The relay's own messages to a peer. They are bounded like any other, and counted if they do not
 * fit.
 */
import { ERRORS, type ErrorCode } from "@blindrelay/protocol";
import { encodeError, type Subject } from "@blindrelay/protocol/wire";
import type { Counters } from "../counters.ts";
import type { Connection } from "./connection.ts";
import type { Outbox } from "./outbox.ts";

export class ControlMessages {
  readonly #outbox: Outbox;
  readonly #counters: Counters;
  readonly #maxBytes: number;

  constructor(outbox: Outbox, counters: Counters, maxMessageBytes: number) {
    this.#outbox = outbox;
    this.#counters = counters;
    this.#maxBytes = maxMessageBytes;
  }

  send(connection: Connection, text: string, now: number): void {
    if (!this.#outbox.offer(connection, text, now)) {
      this.#counters.controlMessagesDropped += 1;
    }
  }

  /**
   * An `error`; `subject` is the offending packet or envelope, `detail` replaces the table's text.
   */
  error(
    connection: Connection,
    code: ErrorCode,
    subject: Subject | null,
    now: number,
    detail: string | null = null,
  ): void {
    this.#counters.error(code);
    const meaning = detail ?? ERRORS[code].meaning;
    const text = encodeError(code, meaning, subject);
    // A sid that fills a whole message cannot be returned inside one.
    const tooLong = text.length > this.#maxBytes;
    this.send(connection, tooLong ? encodeError(code, meaning, null) : text, now);
  }

  /** The same for a message that is refused instead of forwarded. */
  refuse(
    connection: Connection,
    code: ErrorCode,
    subject: Subject,
    now: number,
    detail: string | null = null,
  ): void {
    this.#counters.drop(code);
    this.error(connection, code, subject, now, detail);
  }
}
