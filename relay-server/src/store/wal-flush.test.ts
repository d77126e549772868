/** When a change counts as kept by SQLite. */
import fs, { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { groupCommit } from "./group-commit.ts";
import { openStore, type Store } from "./open.ts";
import { readSetting, type SettingName, writeSetting } from "./settings.ts";
import { StoreUnavailable } from "./unavailable.ts";

let folder: string;
let store: Store;
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-wal-"));
  store = await openStore({ engine: "sqlite", path: join(folder, "relay.sqlite") }, true);
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
  rmSync(folder, { recursive: true });
});

const set = (name: SettingName) => store.write((tx) => writeSetting(tx, name, "x"));

test("a change is acknowledged when its flush has ended", async () => {
  const { promise, resolve } = Promise.withResolvers<void>();
  const flush = vi.fn(() => promise);
  const write = groupCommit(store.db, "sqlite", { prepare: async () => undefined, flush });
  let isAcknowledged = false;
  const writing = write((tx) => writeSetting(tx, "totp", "x")).then(() => {
    isAcknowledged = true;
  });
  await expect.poll(() => flush.mock.calls).toEqual([[1]]);
  expect(await readSetting(store.db, "totp")).toBe("x");
  expect(isAcknowledged).toBe(false);
  resolve();
  await writing;
});

test("after a flush that failed nothing is committed until the whole log could be flushed", async () => {
  vi.useFakeTimers({ toFake: ["performance"] });
  const path = join(folder, "relay.sqlite-wal");
  await set("write_probe");
  const flush = vi.spyOn(fs, "fdatasync").mockImplementation((_, done) => done(new Error("EIO")));
  await expect(set("totp")).rejects.toThrow(StoreUnavailable);
  fs.utimesSync(path, 0, 0);
  await expect(set("master_key_check")).rejects.toThrow("EIO");
  expect(fs.statSync(path).mtimeMs).toBeGreaterThan(0); // written again
  await expect(set("master_key_check")).rejects.toThrow("EIO"); // too soon to try again
  expect(flush).toHaveBeenCalledTimes(2);
  flush.mockRestore();
  expect(await readSetting(store.db, "totp")).toBe("x"); // refused, and there all the same
  expect(await readSetting(store.db, "master_key_check")).toBeNull();
  vi.advanceTimersByTime(1000);
  await set("master_key_check");
  expect(await readSetting(store.db, "master_key_check")).toBe("x");
});
