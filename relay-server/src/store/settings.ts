/** Settings that were fixed when the store was created. */
import type { Db } from "./tables.ts";

/** `write_probe` contains nothing: it only tests whether writing works (health.ts). */
export type SettingName = "master_key_check" | "totp" | "write_probe";

/** The value of a setting, or null if the store was opened but never initialised. */
export const readSetting = async (db: Db, name: SettingName): Promise<string | null> => {
  const row = await db
    .selectFrom("settings")
    .select("value")
    .where("name", "=", name)
    .executeTakeFirst();
  return row?.value ?? null;
};

/** Writes a setting that has no value yet. */
export const writeSetting = async (db: Db, name: SettingName, value: string): Promise<void> => {
  await db.insertInto("settings").values({ name, value }).execute();
};
