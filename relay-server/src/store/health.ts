/** Whether the store accepts new work, judged by the last writes and by a test query. */
import { randomBytes } from "node:crypto";
import type { Write } from "./group-commit.ts";
import { readSetting } from "./settings.ts";
import type { Db } from "./tables.ts";
import { unavailability } from "./unavailable.ts";

/** How long the check may take; `/health/ready` guarantees an answer within a second. */
const ANSWER_MS = 600;
/** More than one page: a disk with room for one may have none for the next login. */
const PROBE_BYTES = 16_384;

export interface StoreHealth {
  /** The Write being watched. */
  readonly write: Write;
  /** Whether the store can be read and, after a write has failed, written. Takes at most 600 ms. */
  isReady(): Promise<boolean>;
  /** The same, tried by a write: single changes are not watched. */
  isWritable(): Promise<boolean>;
}

export const storeHealth = (db: Db, write: Write): StoreHealth => {
  let writesFail = false;
  const watched: Write = async (work) => {
    try {
      const value = await write(work);
      writesFail = false;
      return value;
    } catch (error) {
      if (unavailability(error) !== null) writesFail = true;
      throw error;
    }
  };
  const isWritable = () => succeeds(watched(probeWrite));
  return {
    write: watched,
    isReady: () => (writesFail ? isWritable() : succeeds(readSetting(db, "totp"))),
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
