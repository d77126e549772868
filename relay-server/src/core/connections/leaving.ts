/**
 * An agent's link that is about to end because its node restarts. An agent that can hold only one
 * link, such as a board, stays on it until the end, and first answers what was forwarded to it, so
 * that no caller has to guess the outcome of a call. The relay cannot read which messages expect an
 * answer, so it counts them by session: an event may be mistaken for an answer.
 */
import { bindablePart, type Subject } from "@blindrelay/protocol/wire";

/** Sessions and requests that are counted; further ones are not waited for. */
const MAX_AWAITED = 4096;

export class Leaving {
  /** Nothing more is forwarded to the agent. */
  isClosed = false;
  /** Unanswered messages, by the first part of the sid or by request. */
  readonly #awaited = new Map<string, number>();

  /** A message went to the agent. */
  forwarded(subject: Subject): void {
    const key = keyOf(subject);
    const count = this.#awaited.get(key) ?? 0;
    if (count > 0 || this.#awaited.size < MAX_AWAITED) this.#awaited.set(key, count + 1);
  }

  /** A message came from the agent. */
  answered(subject: Subject): void {
    const key = keyOf(subject);
    const count = this.#awaited.get(key) ?? 0;
    if (count > 1) this.#awaited.set(key, count - 1);
    else this.#awaited.delete(key);
  }

  /** Whether everything was answered, as far as the relay can know. */
  get isDrained(): boolean {
    return this.#awaited.size === 0;
  }
}

const keyOf = ({ sid, requestId }: Subject): string =>
  (sid === null ? requestId : bindablePart(sid)) ?? "";
