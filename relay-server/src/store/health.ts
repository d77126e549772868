/** Whether the store accepts new work, judged by the last writes and by a test query. */
import { randomBytes } from "node:crypto";
import type { Write } from "./group-commit.ts";
import { readSetting } from "./settings.ts";
import type { Db } from "./tables.ts";
import { StoreDamaged, type StoreUnavailable, unavailability } from "./unavailable.ts";

/** How long the check may take; `/health/ready` guarantees an answer within a second. */
const ANSWER_MS = 600;
/** It stops everything for 64 ms at most. */
const SUSPECT_EVERY_MS = 60_000;
/** More than one page: a disk with room for one may have none for the next login. */
const PROBE_BYTES = 16_384;

export interface StoreHealth {
  /** The Write being watched. */
  readonly write: Write;
  /** The first damage that was met; null: none. It lasts until the store is opened anew. */
  damage(): StoreDamaged | null;
  /**
   * Call it with an error that nobody expected: what is read from a damaged store makes code fail
   * that is right. Looks at the pages once a minute at most; the same answer as `damage`.
   */
  suspect(): StoreDamaged | null;
  /**
   * What `read` makes of a row. Engines have no checksums of rows, so a broken one may be noticed
   * here only. Throws StoreDamaged if `read` throws.
   */
  decoded<T>(read: () => T): T;
  /**
   * The same for what a key opens: a key that another node has just replaced opens nothing either,
   * so the pages decide whether the store is damaged. This request fails in any case.
   */
  unsealed<T>(read: () => T): T;
  /**
   * Whether the store is undamaged and can be read and, after something has failed, written. Takes
   * at most 600 ms.
   */
  isReady(): Promise<boolean>;
  /** The same, tried by a write: single changes are not watched. */
  isWritable(): Promise<boolean>;
}

/** What is known of a store's state, and how to learn more. */
export class StoreState {
  /** Says what the damage is, and the way back. */
  readonly #name: (cause: unknown) => StoreDamaged;
  /** Throws if a page is broken. */
  readonly #verify: () => void;
  #verifiedAtMs = Number.NEGATIVE_INFINITY;
  damage: StoreDamaged | null = null;
  /** Until a write succeeds. */
  fails = false;

  constructor(name: (cause: unknown) => StoreDamaged, verify: () => void) {
    this.#name = name;
    this.#verify = verify;
  }

  /** Call it with each failure, whatever met it. */
  heed = (failure: StoreUnavailable): void => {
    this.fails = true;
    if (failure instanceof StoreDamaged) this.damage ??= failure;
  };

  suspect = (): StoreDamaged | null => {
    const nowMs = performance.now();
    if (this.damage !== null || nowMs - this.#verifiedAtMs < SUSPECT_EVERY_MS) return this.damage;
    this.#verifiedAtMs = nowMs;
    try {
      this.#verify();
    } catch (error) {
      const failure = unavailability(error);
      if (failure !== null) this.heed(failure);
    }
    return this.damage;
  };

  decoded = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      const damage = this.#name(error);
      this.heed(damage);
      throw damage;
    }
  };

  unsealed = <T>(read: () => T): T => {
    try {
      return read();
    } catch (error) {
      throw this.suspect() ?? this.#name(error);
    }
  };
}

/** `lost`: see WalFlush. `demand`: rejects if a part of the store that no probe uses is away. */
export const storeHealth = (
  db: Db,
  write: Write,
  state: StoreState,
  lost: () => StoreDamaged | null = () => null,
  demand: () => Promise<void> = async () => undefined,
): StoreHealth => {
  const damage = (): StoreDamaged | null => {
    const found = state.damage ?? lost();
    if (found !== null) state.heed(found);
    return found;
  };
  const watched: Write = async (work) => {
    try {
      const value = await write(work);
      state.fails = false;
      return value;
    } catch (error) {
      const failure = unavailability(error);
      if (failure !== null) state.heed(failure);
      throw error;
    }
  };
  const isSound = (probe: () => Promise<unknown>) => async () =>
    damage() === null && (await succeeds(probe())) && state.damage === null;
  const isWritable = isSound(() => demand().then(() => watched(probeWrite)));
  const isReadable = isSound(() => readSetting(db, "totp"));
  return {
    write: watched,
    damage,
    suspect: state.suspect,
    decoded: state.decoded,
    unsealed: state.unsealed,
    isReady: () => (state.fails ? isWritable() : isReadable()),
    isWritable,
  };
};

/** In time. */
const succeeds = (probe: Promise<unknown>): Promise<boolean> =>
  new Promise((resolve) => {
    const timer = setTimeout(() => setImmediate(resolve, false), ANSWER_MS);
    probe
      .then(
        () => resolve(true),
        () => resolve(false),
      )
      .finally(() => clearTimeout(timer));
  });

const probeWrite = async (tx: Db): Promise<void> => {
  const value = randomBytes(PROBE_BYTES / 2).toString("hex");
  await tx
    .insertInto("settings")
    .values({ name: "write_probe", value })
    .onConflict((conflict) => conflict.column("name").doUpdateSet({ value }))
    .execute();
};
