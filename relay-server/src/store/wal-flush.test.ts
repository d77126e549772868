/** When a transaction on SQLite counts as kept. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { groupCommit } from "./group-commit.ts";
import { openStore, type Store } from "./open.ts";
import { readSetting, type SettingName, writeSetting } from "./settings.ts";
import { WalFlush } from "./wal-flush.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-wal-"));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

const withStore = async (check: (store: Store) => Promise<void>) => {
  const store = await openStore({ engine: "sqlite", path: join(folder, "relay.sqlite") }, true);
  await check(store);
  await store.close();
};

test("after a flush that failed none is trusted before the log was written to the database", async () => {
  const path = join(folder, "database");
  let emptied = 0;
  let isBroken = true;
  const log = new WalFlush(path, () => {
    if (isBroken) throw new Error("broken");
    emptied += 1;
  });
  await expect(log.flush()).rejects.toThrow("broken"); // there is no file
  writeFileSync(`${path}-wal`, "");
  await expect(log.flush()).rejects.toThrow("broken");
  isBroken = false;
  await log.flush();
  expect(emptied).toBe(1);
  await log.flush();
  expect(emptied).toBe(1);
  await log.close();
});

test("a write is acknowledged when its flush has ended, and refused when it failed", () =>
  withStore(async ({ db }) => {
    const flushes: { resolve: () => void; reject: (error: Error) => void }[] = [];
    const write = groupCommit(db, "sqlite", () => {
      const { promise, resolve, reject } = Promise.withResolvers<void>();
      flushes.push({ resolve, reject });
      return promise;
    });
    const settled: string[] = [];
    const note = (name: SettingName) =>
      write((tx) => writeSetting(tx, name, "x")).then(
        () => settled.push(name),
        (error) => settled.push(`${name}: ${error.message}`),
      );
    const first = note("totp");
    await expect.poll(() => flushes).toHaveLength(1);
    expect(await readSetting(db, "totp")).toBe("x");
    expect(settled).toEqual([]);
    flushes[0]?.resolve();
    await first;
    const second = note("master_key_check");
    await expect.poll(() => flushes).toHaveLength(2);
    flushes[1]?.reject(new Error("no disk"));
    await second;
    expect(settled).toEqual(["totp", "master_key_check: no disk"]);
  }));

test("SQLite flushes single changes itself, also after transactions that ended either way", () =>
  withStore(async ({ db, write }) => {
    const modes: unknown[] = [];
    const note = async (on = db) => {
      const { rows } = await sql<{ synchronous: number }>`pragma synchronous`.execute(on);
      modes.push(rows[0]?.synchronous);
    };
    await note();
    await write((tx) => note(tx));
    await note();
    const undone = write(async () => {
      throw new Error("undone");
    });
    await expect(undone).rejects.toThrow("undone");
    await note();
    expect(modes).toEqual([2, 1, 2, 2]);
  }));
