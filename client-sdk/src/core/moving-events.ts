/**
 * The events around the move of a subscriber from one session to the next. The agent seals each
 * event in every session that it holds; the subscriber gets those of the old one until the new one
 * has answered, and then those of the new one. So an event of the old one that comes later is
 * either a repeat or, if the agent sealed it before it held the new one, missing.
 *
 *     hear both --the old one has answered a ping--> the new one has answered a later ping: over
 *
 * At the first answer the old session is complete, apart from gaps, which it reports. At the second
 * the new one has everything that both have.
 */

/** Characters of events that are compared; beyond that all that was not found counts as missing. */
const MAX_COMPARED = 1_048_576;

export class MovingEvents<Session> {
  readonly before: Session;
  readonly after: Session;
  /** Whether the old session has answered: what comes in it now is in the new one too. */
  isComplete = false;
  /**
   * How much more often each came in the old session than in the new one. By its text, because an
   * agent may send very many: a search for each would take the square of that.
   */
  private readonly surplus = new Map<string, number>();
  private compared = 0;

  constructor(before: Session, after: Session) {
    this.before = before;
    this.after = after;
  }

  /** An event of either session; false: too many to compare. */
  add(session: Session, event: string, data: unknown): boolean {
    const isOld = session === this.before;
    if (isOld ? this.isComplete : session !== this.after) return true;
    const text = JSON.stringify([event, data]);
    this.compared += text.length;
    const has = (this.surplus.get(text) ?? 0) + (isOld ? 1 : -1);
    if (has === 0) this.surplus.delete(text);
    else this.surplus.set(text, has);
    return this.compared <= MAX_COMPARED;
  }

  /** Events that the subscriber did not get. */
  get missing(): number {
    let missing = 0;
    for (const times of this.surplus.values()) missing += Math.max(0, times);
    return missing;
  }
}
