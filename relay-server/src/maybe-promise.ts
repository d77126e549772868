/**
 * An answer of the store: immediate from SQLite, which runs in this process, or later from a
 * database that takes a round trip. A promise for each step of a login would cost more than half of
 * the login.
 */
export type MaybePromise<T> = T | Promise<T>;

/** Continues with an answer, synchronously if it is available. */
export const whenKnown = <T, U>(
  answer: MaybePromise<T>,
  goOn: (value: T) => MaybePromise<U>,
): MaybePromise<U> => (answer instanceof Promise ? answer.then(goOn) : goOn(answer));
