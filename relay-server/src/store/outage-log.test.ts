/** An outage of the store is a few lines of the log, however many requests meet it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sql } from "kysely";
import { expect, test } from "vitest";
import { openStore } from "./open.ts";
import { OutageLog } from "./outage-log.ts";
import { writeSetting } from "./settings.ts";
import { StoreDamaged, StoreUnavailable } from "./unavailable.ts";

const start = () => {
  const lines: unknown[][] = [];
  const clock = { nowMs: 0 };
  const note = (...line: unknown[]) => void lines.push(line);
  const log = new OutageLog({ error: note, fatal: note, warn: note } as never, () => clock.nowMs);
  return { lines, clock, log, take: () => lines.splice(0) };
};
const err = new StoreUnavailable(new Error("SQLITE_FULL"));
const no = { damage: () => null, isWritable: async () => false };
const yes = { damage: () => null, isWritable: async () => true };

test("the first error is logged in full, later ones are counted, and the end is one line", async () => {
  const { clock, log, take } = start();
  log.error({ err }, "a request");
  expect(take()).toEqual([[{ err }, "a request"]]);
  for (let i = 0; i < 99; i += 1) {
    clock.nowMs += 100;
    log.error({ err }, "a request");
    await log.look(no);
  }
  expect(take()).toEqual([]);
  clock.nowMs += 100;
  log.error({ err: new Error("around it", { cause: err }) }, "a timer");
  const last = `a timer: ${err.message}`;
  expect(take()).toEqual([[{ errors: 100, last }, "the store is still unavailable"]]);
  clock.nowMs += 2000;
  log.error({ err }, "a timer");
  await log.look(yes);
  expect(take()).toEqual([
    [{ errors: 1, last }, "the store is still unavailable"],
    [{ seconds: 12 }, "the store is available again"],
  ]);
  await log.look(yes);
  expect(take()).toEqual([]);
  log.error({ err }, "a request");
  expect(take()).toEqual([[{ err }, "a request"]]);
});

test("other errors are logged as usual, even during an outage", () => {
  const { log, take } = start();
  log.error({ err }, "a request");
  const other = new Error("a bug");
  log.error({ err: other }, "a request");
  log.error({ err: other }, "a request");
  expect(take()).toHaveLength(3);
  log.flush();
  expect(take()).toEqual([]);
});

test("damage is said once, whoever met it, and never over", async () => {
  const { log, take } = start();
  const found = new StoreDamaged(new Error("SQLITE_CORRUPT"), "the store x", "restore it");
  const damaged = { damage: () => found, isWritable: async () => false };
  log.error({ err }, "a request");
  take();
  log.error({ err: found }, "a request");
  for (let i = 0; i < 3; i += 1) await log.look(damaged);
  expect(take()).toEqual([[{ err: found }, "the store x is damaged: SQLITE_CORRUPT; restore it"]]);
});

test("an outage that only single changes meet has one end too, and the relay is not ready", async () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-outage-log-"));
  const store = await openStore({ engine: "sqlite", path: join(folder, "relay.sqlite") }, true);
  const { log, take } = start();
  const change = () =>
    writeSetting(store.db, "totp", "required").catch((error) => log.error({ err: error }, "it"));
  expect(await store.isWritable()).toBe(true);
  await sql`pragma query_only = on`.execute(store.db);
  for (let i = 0; i < 3; i += 1) {
    await change();
    await log.look(store);
    expect(await store.isReady()).toBe(false);
  }
  expect(take()).toHaveLength(1);
  await sql`pragma query_only = off`.execute(store.db);
  await log.look(store);
  expect(take()).toEqual([
    [expect.objectContaining({ errors: 2 }), "the store is still unavailable"],
    [{ seconds: 0 }, "the store is available again"],
  ]);
  expect(await store.isReady()).toBe(true);
  await store.close();
  rmSync(folder, { recursive: true });
});
