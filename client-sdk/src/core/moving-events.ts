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
  /** Events of one session that have not come in the other one. */
  private readonly onlyBefore: string[] = [];
  private readonly onlyAfter: string[] = [];
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
    const [own, others] = isOld
      ? [this.onlyBefore, this.onlyAfter]
      : [this.onlyAfter, this.onlyBefore];
    const at = others.indexOf(text);
    if (at < 0) own.push(text);
    else others.splice(at, 1);
    return this.compared <= MAX_COMPARED;
  }

  /** Events that the subscriber did not get. */
  get missing(): number {
    return this.onlyBefore.length;
  }
}
