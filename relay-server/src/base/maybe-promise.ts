/**
 * An answer of the store: immediate from SQLite, which runs in this process, or later from a
 * database that takes a round trip. On SQLite a login is thus decided within its turn.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Continues with an answer, synchronously if it is available. */
export const whenKnown = <T, U>(
  answer: MaybePromise<T>,
  goOn: (value: T) => MaybePromise<U>,
): MaybePromise<U> => (answer instanceof Promise ? answer.then(goOn) : goOn(answer));
