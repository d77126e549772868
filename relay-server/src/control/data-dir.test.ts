/**
 * Creating and opening a relay's store: what is refused, and that a crash in between does no harm.
 */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { postgres } from "../store/testing/engines.ts";
import { type InitOptions, initStore, openData } from "./data-dir.ts";

let folder: string;
let data: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "blindrelay-setup-"));
  data = join(folder, "a", "relay");
});
afterEach(() => rmSync(folder, { recursive: true }));

const make = (more: Partial<InitOptions> = {}) =>
  initStore({ data, username: "ada", password: "correct horse", totp: true, ...more });

test.each([
  [{ password: "1234567" }, "8 to 256 characters"],
  [{ password: "x".repeat(257) }, "8 to 256 characters"],
  [{ username: "" }, "a user name has"],
  [{ username: "a b" }, "a user name has"],
  [{ username: "x".repeat(65) }, "a user name has"],
])("%j is a usage error, and leaves nothing behind", async (more, named) => {
  await expect(make(more)).rejects.toThrow(named);
  await expect(make(more)).rejects.toMatchObject({ exitCode: 2 });
  expect(existsSync(data)).toBe(false);
});

test("a store is created once", async () => {
  const { totpSecret } = await make();
  await expect(make()).rejects.toMatchObject({ exitCode: 5 });
  const { store, secrets } = await openData({ data });
  const user = await store.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();
  expect(secrets.unwrap(user.id, user.totp_secret as string)).toBe(totpSecret);
  await store.close();
});

const shared = postgres();
for (const [name, skipped, where] of [
  ["SQLite", false, async () => undefined],
  ["PostgreSQL", shared.skipped, async () => ((await shared.prepare()) as { url: string }).url],
] as const) {
  test.skipIf(skipped)(
    `where ${name} holds a store, init writes nothing, not even a key`,
    async () => {
      const store = await where();
      await make({ store });
      const tables = async () => {
        const { store: opened } = await openData({ data, store });
        const all = (name: "users" | "settings") =>
          opened.db.selectFrom(name).selectAll().execute();
        const found = JSON.stringify([await all("users"), await all("settings")]);
        await opened.close();
        return found;
      };
      const before = await tables();
      const key = join(data, "key");
      const elsewhere = store === undefined ? data : join(folder, "second");
      if (store === undefined) renameSync(key, `${key}.away`);
      await expect(make({ data: elsewhere, store, username: "eve" })).rejects.toMatchObject({
        exitCode: 5,
      });
      expect(existsSync(join(elsewhere, "key"))).toBe(false);
      if (store === undefined) renameSync(`${key}.away`, key);
      expect(await tables()).toBe(before);
      if (store !== undefined) await shared.remove();
    },
  );
}

test("a partial one is completed by the next attempt, with the key that was left", async () => {
  await make();
  const { store, secrets } = await openData({ data });
  const check = secrets.check();
  for (const table of ["settings", "tokens", "users"] as const)
    await store.db.deleteFrom(table).execute();
  await store.close();
  await expect(openData({ data })).rejects.toThrow("no store in");
  await make();
  const again = await openData({ data });
  expect(again.secrets.check()).toBe(check);
  await again.store.close();
});

test("a truncated key is refused", async () => {
  mkdirSync(join(data, "key"), { recursive: true });
  const part = join(data, "key", "master.key.new");
  writeFileSync(part, "cut");
  await make();
  expect(existsSync(part)).toBe(false);
  const { store } = await openData({ data });
  await store.close();
});

test("a key passed from outside is used and not written", async () => {
  const masterKey = "ab".repeat(32);
  await make({ masterKey });
  expect(existsSync(join(data, "key"))).toBe(false);
  await expect(openData({ data })).rejects.toMatchObject({ exitCode: 5 });
  const { store } = await openData({
    data,
    masterKey: Buffer.from(masterKey, "hex").toString("base64"),
  });
  await store.close();
});

test("what cannot be opened is reported with the reason and its exit code", async () => {
  await expect(openData({ data })).rejects.toMatchObject({ exitCode: 4 });
  const away = openData({ data, store: "postgres://127.0.0.1:1/x" });
  await expect(away).rejects.toThrow("cannot open the store: ");
  await expect(away).rejects.toMatchObject({ exitCode: 4 });
  await expect(make({ masterKey: "x" })).rejects.toThrow("64 hexadecimal digits");
  mkdirSync(join(data, "store"), { recursive: true });
  writeFileSync(
    join(data, "store", "relay.sqlite"),
    "this is no database, and long enough to tell",
  );
  await expect(openData({ data })).rejects.toThrow("cannot open the store: ");
  writeFileSync(join(folder, "file"), "");
  await expect(make({ data: join(folder, "file") })).rejects.toThrow("cannot make the folder");
});
