/**
 * Which sids the relay has bound to this link (section 3, "Routing"): the first message of a sid is
 * sent in an envelope, later ones bare. The least recently used is dropped, slightly earlier than
 * at the relay; a packet in either direction is a use, as there.
 */
export class Bindings {
  private readonly limit: number;
  private readonly firsts = new Set<string>();
  /** The most recently used one, which most packets use again. */
  private latest: string | null = null;

  constructor(limit: number) {
    this.limit = limit;
  }

  /**
   * Whether `first` (the first part of a sid) is bound; if so, it becomes the most recently used.
   */
  use(first: string): boolean {
    if (first === this.latest) return true;
    if (!this.firsts.delete(first)) return false;
    this.firsts.add(first);
    this.latest = first;
    return true;
  }

  add(first: string): void {
    this.firsts.delete(first);
    this.firsts.add(first);
    this.latest = first;
    if (this.firsts.size <= this.limit) return;
    for (const oldest of this.firsts) {
      this.firsts.delete(oldest);
      return;
    }
  }

  /** A new link knows none of the old one's bindings. */
  clear(): void {
    this.firsts.clear();
    this.latest = null;
  }
}
