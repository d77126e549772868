/**
 * Handles each notice once: immediately if this relay posted it or another node sends it, and
 * otherwise within a second, because the store is read that often. PostgreSQL numbers notices when
 * they are written but shows them when they are committed, so the latest ones are read again.
 *
 * Numbers alone do not identify a notice: a database that has lost its latest changes, such as a
 * standby that had fallen behind, gives the same numbers again. Every node would take the next
 * revocations for old ones, so a notice counts as handled only if all of it is the same, and the
 * last notice that was read must still be there.
 */
import type { Notice, NoticeSource } from "../store/notices.ts";

/** Much longer than a transaction that posts a notice can last, and than clocks may differ. */
const OVERLAP_MS = 60_000;
/** A relay checks this many numbers below the last one when it starts. */
const OVERLAP_AT_START = 1000;
const PAGE = 1000;
/** Notices that are remembered at once, even if others on the bus invent them. */
const MAX_KNOWN = 100_000;

interface NoticeReaderParts {
  readonly source: NoticeSource;
  readonly act: (notice: Notice) => void;
  /** The notices in the store are others than those that were read: `lost` is not there. */
  readonly onChanged: (lost: Notice) => void;
  /** Monotonic. */
  readonly nowMs: () => number;
  /** Unix time. */
  readonly wallMs: () => number;
}

export class NoticeReader {
  readonly #parts: NoticeReaderParts;
  /** Those that were handled, or existed at the start. */
  readonly #known = new Map<string, Notice>();
  /** Everything up to this number has been read. */
  #after = 0;
  /** The last one that was read. */
  #latest: Notice | null = null;
  #changes = 0;
  #isLooking = false;
  #isHinted = false;
  /** The highest numbers at earlier times, oldest first. */
  #marks: { atMs: number; seq: number }[] = [];

  private constructor(parts: NoticeReaderParts) {
    this.#parts = parts;
  }

  /** Starts with the existing notices as read. */
  static async open(parts: NoticeReaderParts): Promise<NoticeReader> {
    const reader = new NoticeReader(parts);
    reader.#after = Math.max(0, (await parts.source.last()) - OVERLAP_AT_START);
    const notices = await reader.#read(reader.#after);
    for (const notice of notices) reader.#remember(notice);
    reader.#latest = notices.at(-1) ?? null;
    return reader;
  }

  /** How often the store's notices turned out to be others than those that were read. */
  get changes(): number {
    return this.#changes;
  }

  /** Handles a notice, unless that was done. */
  take(notice: Notice): void {
    if (this.#known.has(keyOf(notice))) return;
    this.#remember(notice);
    this.#parts.act(notice);
  }

  /**
   * Another node has posted notices: those that it sends are handled even if the store cannot be
   * read. However many messages arrive, one look at the store runs, and one after it.
   */
  hear(notices: readonly Notice[]): void {
    for (const notice of notices) this.take(notice);
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
    const latest = this.#latest;
    const notices = await this.#read(Math.min(this.#after, (latest?.seq ?? Infinity) - 1));
    const isThere = (each: Notice) => latest === null || keyOf(each) === keyOf(latest);
    if (latest !== null && !notices.some(isThere)) {
      await this.#readAnew(latest);
      return;
    }
    for (const notice of notices) this.take(notice);
    this.#settle(notices.at(-1) ?? null);
  }

  /** What is known is not handled again, nor is what was posted long before `lost`. */
  async #readAnew(lost: Notice): Promise<void> {
    const { source, wallMs, onChanged } = this.#parts;
    const after = Math.max(0, (await source.last()) - OVERLAP_AT_START);
    const sinceMs = Math.min(lost.at, wallMs()) - OVERLAP_MS;
    const [recent, latest] = [await this.#read(0, sinceMs), await this.#read(after)];
    this.#changes += 1;
    onChanged(lost);
    this.#after = after;
    this.#marks = [];
    this.#latest = latest.at(-1) ?? null;
    for (const notice of latest) if (notice.at < sinceMs) this.#remember(notice);
    for (const notice of recent) this.take(notice);
  }

  /** Numbers that have been the highest for long enough are not read again. */
  #settle(latest: Notice | null): void {
    this.#latest = latest ?? this.#latest;
    const nowMs = this.#parts.nowMs();
    this.#marks.push({ atMs: nowMs, seq: latest?.seq ?? this.#after });
    const settled = this.#marks.filter(({ atMs }) => atMs <= nowMs - OVERLAP_MS).at(-1);
    if (settled === undefined) return;
    this.#after = Math.max(this.#after, settled.seq);
    this.#marks = this.#marks.filter(({ atMs }) => atMs > nowMs - OVERLAP_MS);
    const keptSinceMs = (this.#latest?.at ?? 0) - OVERLAP_MS;
    for (const [key, { seq, at }] of this.#known) {
      if (seq <= this.#after && at < keptSinceMs) this.#known.delete(key);
    }
  }

  #remember(notice: Notice): void {
    this.#known.set(keyOf(notice), notice);
    if (this.#known.size <= MAX_KNOWN) return;
    for (const oldest of this.#known.keys()) {
      this.#known.delete(oldest);
      return;
    }
  }

  async #read(after: number, sinceMs = 0): Promise<Notice[]> {
    const notices: Notice[] = [];
    for (;;) {
      const from = notices.at(-1)?.seq ?? after;
      const page = await this.#parts.source.list(from, sinceMs, PAGE);
      notices.push(...page);
      if (page.length < PAGE) return notices;
    }
  }
}

const keyOf = ({ seq, kind, subject, at }: Notice): string => `${seq} ${at} ${kind} ${subject}`;
