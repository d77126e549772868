/**
 * Answers of a store: at once where they are at hand, as from SQLite, which is asked in this
 * process; later where asking is a round trip. A promise for each step of a login cost more than
 * half of taking it in.
 */
export type Answer<T> = T | Promise<T>;

/** Goes on with an answer: now where it is at hand. */
export const whenKnown = <T, U>(answer: Answer<T>, goOn: (value: T) => Answer<U>): Answer<U> =>
  answer instanceof Promise ? answer.then(goOn) : goOn(answer);
