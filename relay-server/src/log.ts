/**
 * The relay's log: JSON lines on standard error; standard output is for results. Callers log
 * identifiers, addresses and times, never a token, password or code. `redact` is the second line of
 * defence for fields with such names.
 */
import { write, writeSync } from "node:fs";
import { type DestinationStream, type Logger, pino } from "pino";
import { contained } from "./base/contain.ts";

/** Lines that wait for a slow reader of the log; further lines are dropped and counted. */
const MAX_WAITING = 4096;
/** How soon to try again after a reader, or a full disk, accepted nothing. */
const RETRY_MS = 100;
/** How long an ending process waits for a reader that accepts nothing. */
const FLUSH_MS = 1000;

const NOTHING = Buffer.alloc(0);

const SECRET_FIELDS = [
  "authorization",
  "password",
  "current_password",
  "totp_code",
  "api_token",
  "session_token",
  "access_token",
  "secret",
];

/** `out` replaces standard error. */
export const createLog = (level: string, out: DestinationStream = standardError()): Logger =>
  pino(
    {
      level,
      base: null,
      timestamp: pino.stdTimeFunctions.isoTime,
      redact: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`, `*.*.${field}`]),
    },
    out,
  );

/**
 * Standard error, whatever its reader does: a slow reader or a full disk delays nothing, and if the
 * reader is gone, only logging ends. pino's own destination holds any number of lines for a stalled
 * reader, and at exit tries endlessly to write them to one that is gone.
 */
class LogStream implements DestinationStream {
  readonly #fd: number;
  #waiting: string[] = [];
  /** The part that an earlier write did not accept. */
  #rest: Buffer = NOTHING;
  #busy = false;
  #gone = false;
  #dropped = 0;

  constructor(fd: number) {
    this.#fd = fd;
  }

  write(line: string): void {
    if (this.#gone) return;
    if (this.#waiting.length >= MAX_WAITING) {
      this.#dropped += 1;
      return;
    }
    this.#waiting.push(line);
    this.#next();
  }

  /** At exit: writes waiting lines, as far as the reader accepts them. */
  flushSync(): void {
    const deadline = performance.now() + FLUSH_MS;
    let bytes = Buffer.concat([this.#rest, this.#gather()]);
    while (!this.#gone && bytes.length > 0) {
      try {
        bytes = bytes.subarray(writeSync(this.#fd, bytes));
      } catch (error) {
        if (!isFull(error) || performance.now() > deadline) return;
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
      }
    }
  }

  #next(): void {
    if (this.#busy) return;
    // Further lines wait, where they are counted, until that is written.
    const bytes = this.#rest.length > 0 ? this.#rest : this.#gather();
    this.#rest = NOTHING;
    if (bytes.length === 0) return;
    this.#busy = true;
    write(this.#fd, bytes, (error, taken) => {
      if (error !== null && !isFull(error)) {
        this.#gone = true;
        this.#waiting = [];
        return;
      }
      this.#rest = bytes.subarray(taken ?? 0);
      const again = contained("timer", "the log failed", () => {
        this.#busy = false;
        this.#next();
      });
      if (error === null) again();
      else setTimeout(again, RETRY_MS).unref();
    });
  }

  #gather(): Buffer {
    if (this.#dropped > 0) {
      this.#waiting.push(
        `{"level":40,"lines":${this.#dropped},"msg":"lines are missing here: the log's reader was slow"}\n`,
      );
      this.#dropped = 0;
    }
    return Buffer.from(this.#waiting.splice(0).join(""));
  }
}

/** Of a pipe, or of a disk: neither lasts, as a reader's end does. */
const FULL: readonly (string | undefined)[] = ["EAGAIN", "ENOSPC", "EDQUOT"];

const isFull = (error: unknown): boolean => FULL.includes((error as NodeJS.ErrnoException).code);

let shared: LogStream | null = null;

/** This process has only one such stream. */
export const standardError = (): LogStream => {
  if (shared !== null) return shared;
  const stream = new LogStream(2);
  process.on("exit", () => stream.flushSync());
  shared = stream;
  return stream;
};
