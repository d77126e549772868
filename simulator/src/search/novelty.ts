/**
 * What guides a search: triples of what happened at a peer before, what happens now, and which
 * fault began last. A case that shows new ones is worth changing further.
 */

/** More are not remembered; by then, little is new. */
const MAX_TRIPLES = 200_000;

export class Novelty {
  private readonly known = new Set<string>();
  private readonly before = new Map<string, string>();
  private lastFault = "";
  /** New triples since `begin`. */
  fresh = 0;

  begin(): void {
    this.before.clear();
    this.lastFault = "";
    this.fresh = 0;
  }

  get size(): number {
    return this.known.size;
  }

  /** As a world's `watch`. */
  readonly watch = (what: string, who: string, text: string): void => {
    if (what === "fault") this.lastFault = `${who} ${text}`;
    const event = eventOf(what, text);
    const role = who.replace(/[0-9#/].*/, "");
    const triple = `${role} ${this.before.get(who) ?? ""} > ${event} @ ${this.lastFault}`;
    this.before.set(who, event);
    if (this.known.has(triple) || this.known.size >= MAX_TRIPLES) return;
    this.known.add(triple);
    this.fresh += 1;
  };
}

/** What happened, without what differs from one device to another. */
const eventOf = (what: string, text: string): string => {
  if (what === "up" || what === "down") {
    if (!text.startsWith('{"type":"')) return `${what} packet`;
    const type = text.slice(9, text.indexOf('"', 9));
    const at = text.indexOf('"code":"');
    return at < 0
      ? `${what} ${type}`
      : `${what} ${type} ${text.slice(at + 8, text.indexOf('"', at + 8))}`;
  }
  if (what === "connect" || what === "boot" || what === "log") return what;
  return `${what} ${text.replace(/[0-9]+/g, "n").slice(0, 40)}`;
};
