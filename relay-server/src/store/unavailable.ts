/**
 * The store cannot be read or written at the moment, but may be later: a database that is down,
 * frozen or restarting, a disk that is full or broken. REST answers 503 `UNAVAILABLE`, links the
 * same code.
 */
import { messageOf } from "@blindrelay/protocol/command-line";

export class StoreUnavailable extends Error {
  constructor(cause: unknown, message = `the store is unavailable: ${messageOf(cause)}`) {
    super(message, { cause });
  }
}

/** What is stored is broken, says the engine: no retry will help. */
export class StoreDamaged extends StoreUnavailable {
  /** `which`: names the store; `wayBack`: what its owner has to do. */
  constructor(cause: unknown, which: string, wayBack: string) {
    super(cause, `${which} is damaged: ${messageOf(cause)}; ${wayBack}`);
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
