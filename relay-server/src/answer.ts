/**
 * An answer of the store: available at once from SQLite, which runs in this process, or later from
 * a database that takes a round trip. A promise for each step of a login would cost more than half
 * of the login.
 */
export type Answer<T> = T | Promise<T>;

/** Goes on with an answer: now where it is at hand. */
export const whenKnown = <T, U>(answer: Answer<T>, goOn: (value: T) => Answer<U>): Answer<U> =>
  answer instanceof Promise ? answer.then(goOn) : goOn(answer);
