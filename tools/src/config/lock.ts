/** One process at a time changes a file: what another one wrote meanwhile must not be lost. */
import { closeSync, mkdirSync, openSync, rmSync, statSync } from "node:fs";
import { dirname } from "node:path";
import { Failure } from "../failure.ts";

/** A change takes milliseconds, a tenth of a second under a passphrase: who holds it for so long has died. */
const STALE_MS = 10_000;
const PAUSE_MS = 10;

const pause = (): void => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, PAUSE_MS);
};

const isStale = (lock: string): boolean => {
  try {
    // Also one from a clock that was ahead.
    return Math.abs(Date.now() - statSync(lock).mtimeMs) > STALE_MS;
  } catch {
    return false; // it was let go
  }
};

const take = (lock: string): void => {
  for (;;) {
    try {
      closeSync(openSync(lock, "wx", 0o600));
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
    }
    if (isStale(lock)) rmSync(lock, { force: true });
    else pause();
  }
};

/** Throws a Failure (usage) where its folder cannot be written, and what `change` throws. */
export const withLock = (path: string, change: () => void): void => {
  const lock = `${path}.lock`;
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    take(lock);
  } catch (error) {
    throw new Failure("usage", `cannot write ${path}: ${(error as Error).message}`, error);
  }
  try {
    change();
  } finally {
    rmSync(lock, { force: true });
  }
};
