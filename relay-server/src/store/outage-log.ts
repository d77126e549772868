/**
 * Logs outages of the store, which every request, login and timer encounters: the first error in
 * full, then a line with their number every few seconds, and one when the store is back.
 */
import type { Logger } from "pino";
import type { Store } from "./open.ts";
import { unavailability } from "./unavailable.ts";

const EVERY_MS = 10_000;

/** The part of a log that errors are written to. */
export interface ErrorLog {
  error(fields: { readonly err: unknown; readonly request_id?: string }, what: string): void;
}

export class OutageLog implements ErrorLog {
  readonly #log: Pick<Logger, "error" | "fatal" | "warn">;
  readonly #nowMs: () => number;
  /** Null while the store is available, as far as known. */
  #sinceMs: number | null = null;
  #saidAtMs = 0;
  /** The errors since the last line, and the last of them. */
  #errors = 0;
  #last = "";
  #asking = false;
  #saidDamage = false;

  constructor(log: Pick<Logger, "error" | "fatal" | "warn">, nowMs: () => number) {
    this.#log = log;
    this.#nowMs = nowMs;
  }

  error(fields: Parameters<ErrorLog["error"]>[0], what: string): void {
    const cause = unavailability(fields.err);
    if (cause !== null && this.#sinceMs !== null) {
      this.#errors += 1;
      this.#last = `${what}: ${cause.message}`;
      if (this.#nowMs() - this.#saidAtMs >= EVERY_MS) this.flush();
      return;
    }
    this.#log.error(fields, what);
    if (cause === null) return;
    this.#sinceMs = this.#nowMs();
    this.#saidAtMs = this.#sinceMs;
  }

  /** Call it every second: asks only during an outage. Damage is said once, whoever met it. */
  async look({ damage, isWritable }: Pick<Store, "damage" | "isWritable">): Promise<void> {
    const found = damage();
    if (found !== null && !this.#saidDamage) {
      this.#saidDamage = true;
      this.#log.fatal({ err: found }, found.message);
    }
    if (this.#sinceMs === null || this.#asking) return;
    this.#asking = true;
    const isBack = await isWritable();
    this.#asking = false;
    if (!isBack) return;
    this.flush();
    const seconds = Math.round((this.#nowMs() - this.#sinceMs) / 1000);
    this.#log.warn({ seconds }, "the store is available again");
    this.#sinceMs = null;
  }

  /** Logs what has not been logged. */
  flush(): void {
    if (this.#errors === 0) return;
    this.#log.error({ errors: this.#errors, last: this.#last }, "the store is still unavailable");
    this.#saidAtMs = this.#nowMs();
    this.#errors = 0;
  }
}
