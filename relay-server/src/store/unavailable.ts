/**
 * The store cannot be read or written at the moment, but may be later: a database that is down,
 * frozen or restarting, a disk that is full or broken. REST answers 503 `UNAVAILABLE`, links the
 * same code.
 */
import { messageOf } from "../failure.ts";

export class StoreUnavailable extends Error {
  constructor(cause: unknown) {
    super(`the store is unavailable: ${messageOf(cause)}`, {
      cause,
    });
  }
}

/**
 * The first error in a chain of causes that says that the store is unavailable; null if none does.
 */
export const unavailability = (error: unknown): StoreUnavailable | null => {
  for (let at = error; at instanceof Error; at = at.cause) {
    if (at instanceof StoreUnavailable) return at;
  }
  return null;
};
