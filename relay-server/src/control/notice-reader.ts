/**
 * Handles each notice in the store once: immediately if this relay posted it or another node
 * announces it, and otherwise within a second, because the store is read that often. The content
 * always comes from the store. PostgreSQL numbers notices when they are written but shows them when
 * they are committed, so the latest ones are read again.
 */
import { lastNotice, listNotices, type Notice } from "../store/notices.ts";
import type { Db } from "../store/open.ts";

/** Much longer than a transaction that posts a notice can last. */
const OVERLAP_MS = 60_000;
/** A relay checks this many numbers below the last one when it starts. */
const OVERLAP_AT_START = 1000;
const PAGE = 1000;

export class NoticeReader {
  readonly #db: Db;
  readonly #act: (notice: Notice) => void;
  readonly #nowMs: () => number;
  /** Numbers above `#after` that were handled, or existed at the start. */
  readonly #known = new Set<number>();
  #after = 0;
  #isLooking = false;
  #isHinted = false;
  /** The highest numbers at earlier times, oldest first. */
  #marks: { atMs: number; seq: number }[] = [];

  private constructor(db: Db, act: (notice: Notice) => void, nowMs: () => number) {
    this.#db = db;
    this.#act = act;
    this.#nowMs = nowMs;
  }

  /** Starts with the existing notices as read. `nowMs`: monotonic. */
  static async open(
    db: Db,
    act: (notice: Notice) => void,
    nowMs: () => number,
  ): Promise<NoticeReader> {
    const reader = new NoticeReader(db, act, nowMs);
    reader.#after = Math.max(0, (await lastNotice(db)) - OVERLAP_AT_START);
    for (const { seq } of await reader.#read()) reader.#known.add(seq);
    return reader;
  }

  /** Handles a notice, unless that was done. */
  take(notice: Notice): void {
    if (notice.seq <= this.#after || this.#known.has(notice.seq)) return;
    this.#known.add(notice.seq);
    this.#act(notice);
  }

  /**
   * Another node announces news. Its message only triggers a look at the store; however many
   * arrive, one look runs, and one after it.
   */
  hint(): void {
    this.#isHinted = this.#isLooking;
    // Errors are reported by the look that runs every second.
    this.look().catch(() => undefined);
  }

  /** Handles what is new in the store; does nothing while an earlier look runs. */
  async look(): Promise<void> {
    if (this.#isLooking) return;
    this.#isLooking = true;
    try {
      do {
        this.#isHinted = false;
        await this.#look();
      } while (this.#isHinted);
    } finally {
      this.#isLooking = false;
    }
  }

  async #look(): Promise<void> {
    const notices = await this.#read();
    for (const notice of notices) this.take(notice);
    const nowMs = this.#nowMs();
    this.#marks.push({ atMs: nowMs, seq: notices.at(-1)?.seq ?? this.#after });
    const settled = this.#marks.filter(({ atMs }) => atMs <= nowMs - OVERLAP_MS).at(-1);
    if (settled === undefined) return;
    this.#after = Math.max(this.#after, settled.seq);
    this.#marks = this.#marks.filter(({ atMs }) => atMs > nowMs - OVERLAP_MS);
    for (const seq of this.#known) if (seq <= this.#after) this.#known.delete(seq);
  }

  async #read(): Promise<Notice[]> {
    const notices: Notice[] = [];
    for (;;) {
      const after = notices.at(-1)?.seq ?? this.#after;
      const page = await listNotices(this.#db, after, PAGE);
      notices.push(...page);
      if (page.length < PAGE) return notices;
    }
  }
}
