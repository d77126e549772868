/**
 * One suite for both engines: what the queries guarantee. PostgreSQL is the one on loopback, with a
 * schema for each run; without one these tests are skipped and say so.
 */
import { randomUUID } from "node:crypto";
import { statSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { type Kysely, sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import {
  addAgent,
  changeAgent,
  findAgent,
  findAgents,
  listAgents,
  ownerOf,
  removeAgent,
  writeSighting,
} from "./agents.ts";
import { migrate } from "./migrate.ts";
import { type Db, openStore, type Store, type StoreLocation, StoreMissing } from "./open.ts";
import {
  addRequestsUsed,
  addSession,
  addWithRoom,
  endLogin,
  endSessions,
  findSession,
  forgetSessions,
  makeRoom,
} from "./sessions.ts";
import { readSetting, writeSetting } from "./settings.ts";
import { postgres, sqlite } from "./testing/engines.ts";
import { addToken, currentToken, findToken, forgetTokens, retireTokens } from "./tokens.ts";
import {
  addUser,
  changeUser,
  confirmTotp,
  findUser,
  findUserByName,
  holdFactors,
  replaceRecoveryCodes,
  takeRecoveryCode,
  useTotpStep,
} from "./users.ts";

const NOW = 1_800_000_000_000;

for (const engine of [sqlite(), postgres()]) {
  describe.skipIf(engine.skipped)(engine.name, () => {
    let location: StoreLocation;
    let store: Store;
    let db: Db;
    beforeAll(async () => {
      location = await engine.prepare();
      store = await openStore(location, true);
      db = store.db;
    });
    afterAll(async () => {
      await store?.close();
      await engine.remove();
    });

    const user = async (): Promise<string> => {
      const id = randomUUID();
      await addUser(db, {
        id,
        username: `u-${id}`,
        role: "user",
        password_hash: "-",
        totp_secret: null,
        totp_confirmed: 0,
        created_at: NOW,
      });
      return id;
    };
    const factorsOf = (id: string) => ({ id, password_hash: "-", totp_secret: null });
    const agent = (user_id: string, agent_id: string, created_at = NOW) =>
      addAgent(db, { agent_id, user_id, name: "n", metadata: "{}", created_at });

    test("opening a store again finds everything and migrates nothing", async () => {
      await writeSetting(db, "totp", "required");
      const second = await openStore(location, false);
      expect(await readSetting(second.db, "totp")).toBe("required");
      expect(await readSetting(second.db, "master_key_check")).toBeNull();
      await second.close();
    });

    test("two concurrent openings migrate once", async () => {
      const both = await Promise.all([openStore(location, true), openStore(location, true)]);
      for (const one of both) await one.close();
    });

    test.skipIf(engine.name === "SQLite")(
      "a migration that waits for a lock holds nobody up, is tried again, and says what to do",
      async () => {
        const touch = (by: Db) =>
          by.updateTable("sessions").set({ limited: 0 }).where("hash", "=", "none").execute();
        await sql`drop index sessions_live, audit_by_actor`.execute(db);
        await sql`delete from migrations where name = '0014-live-sessions'`.execute(db);
        const { promise: released, resolve: release } = Promise.withResolvers<void>();
        const { promise: held, resolve: hold } = Promise.withResolvers<void>();
        const holding = db.transaction().execute(async (tx) => {
          await touch(tx);
          hold();
          await released;
        });
        await held;
        const patient = store.patient as Kysely<unknown>;
        const waits = { lockMs: 200, restMs: 200 };
        const refused = migrate(patient, "postgres", { ...waits, tries: 2 });
        await expect(refused).rejects.toThrow("pg_stat_activity");
        const migrating = migrate(patient, "postgres", { ...waits, tries: 1000 });
        await vi.waitUntil(async () => {
          const waiting = sql`select 1 from pg_locks where not granted and relation = 'sessions'::regclass`;
          return (await waiting.execute(db)).rows.length > 0;
        }, 60_000);
        await touch(db);
        release();
        await Promise.all([holding, migrating]);
        const indexes = sql`select 1 from pg_indexes where schemaname = current_schema() and indexname = 'sessions_live'`;
        expect((await indexes.execute(db)).rows).toHaveLength(1);
      },
    );

    test("a store from a newer program is refused", async () => {
      const table = db.withTables<{ migrations: { name: string } }>();
      await table.insertInto("migrations").values({ name: "9999-later" }).execute();
      await expect(openStore(location, false)).rejects.toThrow("9999-later");
      await table.deleteFrom("migrations").where("name", "=", "9999-later").execute();
    });

    test("a user name can be taken once, and is compared byte for byte", async () => {
      const id = await user();
      const row = await findUser(db, id);
      expect(row).toMatchObject({ totp_last_step: 0, totp_rests_until: 0, created_at: NOW });
      expect(await addUser(db, { ...row!, id: randomUUID() })).toBe(false);
      expect((await findUserByName(db, `u-${id}`))?.id).toBe(id);
      expect(await findUserByName(db, `U-${id}`)).toBeUndefined();
    });

    test("a TOTP step can be used once, and no earlier one after it", async () => {
      const id = await user();
      const tries = await Promise.all([7, 7, 7].map((step) => useTotpStep(db, id, step, 8)));
      expect(tries.filter(Boolean)).toHaveLength(1);
      expect(await useTotpStep(db, id, 6, 8)).toBe(false);
      expect(await useTotpStep(db, id, 8, 8)).toBe(true);
    });

    test("only the newest pending secret can be confirmed", async () => {
      const id = await user();
      await changeUser(db, id, { totp_pending: "first" });
      await changeUser(db, id, { totp_pending: "second" });
      expect(await confirmTotp(db, id, "first", 9)).toBe(false);
      expect(await confirmTotp(db, id, "second", 9)).toBe(true);
      expect(await findUser(db, id)).toMatchObject({
        totp_secret: "second",
        totp_confirmed: 1,
        totp_last_step: 9,
      });
    });

    test("a recovery code can be used once, by its own user", async () => {
      const [ada, bob] = [await user(), await user()];
      await replaceRecoveryCodes(db, ada, ["h1", "h2"]);
      expect(await takeRecoveryCode(db, bob, "h1")).toBe(false);
      expect(await takeRecoveryCode(db, ada, "h1")).toBe(true);
      expect(await takeRecoveryCode(db, ada, "h1")).toBe(false);
      await replaceRecoveryCodes(db, ada, ["h3"]);
      expect(await takeRecoveryCode(db, ada, "h2")).toBe(false);
    });

    test("an agent's identifier is unique on the relay and visible only to its owner", async () => {
      const [ada, bob] = [await user(), await user()];
      expect(await agent(ada, "Unique_1")).toBe(true);
      expect(await agent(bob, "Unique_1")).toBe(false);
      expect(await agent(bob, "unique_1")).toBe(true);
      expect(await findAgent(db, bob, "Unique_1")).toBeUndefined();
      expect(await changeAgent(db, bob, "Unique_1", { name: "mine" })).toBeUndefined();
      expect(await removeAgent(db, bob, "Unique_1")).toBe(false);
      expect(await ownerOf(db, "Unique_1")).toBe(ada);
      expect((await changeAgent(db, ada, "Unique_1", { name: "x" }))?.name).toBe("x");
      await writeSighting(db, "Unique_1", NOW + 5, null);
      expect((await findAgent(db, ada, "Unique_1"))?.last_seen).toBe(NOW + 5);
      expect(await removeAgent(db, ada, "Unique_1")).toBe(true);
      expect(await ownerOf(db, "Unique_1")).toBeNull();
    });

    test("pages are ordered by creation, then identifier, and contain each agent once", async () => {
      const ada = await user();
      await agent(ada, "p-b", NOW);
      await agent(ada, "p-a", NOW);
      await agent(ada, "p-c", NOW - 1);
      const first = await listAgents(db, ada, null, 2);
      const last = first.at(-1)!;
      const rest = await listAgents(db, ada, { at: last.created_at, id: last.agent_id }, 2);
      expect([...first, ...rest].map((row) => row.agent_id)).toEqual(["p-c", "p-a", "p-b"]);
    });

    test("retired tokens are remembered for a while, and only the newest is current", async () => {
      const ada = await user();
      const base = {
        kind: "account",
        user_id: ada,
        agent_id: null,
        nonce: "n",
        issued_at: NOW,
      } as const;
      await addToken(db, { ...base, hash: `a-${ada}`, retired_at: null });
      await retireTokens(db, { userId: ada, agentId: null }, NOW + 1);
      await addToken(db, { ...base, hash: `b-${ada}`, retired_at: null });
      await addToken(db, {
        ...base,
        kind: "agent",
        agent_id: "x",
        hash: `c-${ada}`,
        retired_at: null,
      });
      expect((await currentToken(db, { userId: ada, agentId: null }))?.hash).toBe(`b-${ada}`);
      expect((await currentToken(db, { userId: ada, agentId: "x" }))?.hash).toBe(`c-${ada}`);
      await forgetTokens(db, NOW + 1);
      expect((await findToken(db, `a-${ada}`))?.retired_at).toBe(NOW + 1);
      await forgetTokens(db, NOW + 2);
      expect(await findToken(db, `a-${ada}`)).toBeUndefined();
      expect(await findToken(db, `b-${ada}`)).toBeDefined();
    });

    test("a session ends with what it was made with, and with its account", async () => {
      const ada = await user();
      const session = (hash: string, more: object = {}) =>
        addSession(db, {
          hash: `${hash}-${ada}`,
          kind: "client",
          user_id: ada,
          agent_id: null,
          parent: null,
          limited: 0,
          created_at: NOW,
          expires_at: NOW + 1000,
          ...more,
        });
      const alive = async () => {
        const names = ["login", "other", "child", "free", "derived", "device"];
        const rows = await Promise.all(names.map((name) => findSession(db, `${name}-${ada}`)));
        return names.filter((_, i) => rows[i]?.ended_at === null);
      };
      const token = { user_id: ada, nonce: "n", issued_at: NOW, retired_at: null };
      await addToken(db, { ...token, kind: "account", agent_id: null, hash: `acct-${ada}` });
      await addToken(db, { ...token, kind: "agent", agent_id: "dev", hash: `agt-${ada}` });
      await session("login", { kind: "login" });
      await session("other", { kind: "login" });
      await session("child", { parent: `login-${ada}` });
      await session("free");
      await session("derived", { parent: `acct-${ada}` });
      await session("device", { kind: "agent", agent_id: "dev", parent: `agt-${ada}` });
      expect(await alive()).toEqual(["login", "other", "child", "free", "derived", "device"]);
      expect(await endLogin(db, `login-${ada}`, NOW)).toEqual([`child-${ada}`]);
      expect(await alive()).toEqual(["other", "free", "derived", "device"]);
      await retireTokens(db, { userId: ada, agentId: "dev" }, NOW);
      expect(await alive()).toEqual(["other", "free", "derived"]);
      await retireTokens(db, { userId: ada, agentId: null }, NOW);
      expect(await alive()).toEqual(["other", "free"]);
      await endSessions(db, ada, ["login", "client"], `other-${ada}`, NOW);
      expect(await alive()).toEqual(["other"]);
      await addRequestsUsed(db, { hash: `other-${ada}`, requests: 12 });
      expect(await findSession(db, `other-${ada}`)).toMatchObject({ requests_used: 12 });
      await session("stale", { expires_at: NOW });
      await forgetSessions(db, NOW + 1);
      expect(await findSession(db, `stale-${ada}`)).toBeUndefined();
      expect(await findSession(db, `other-${ada}`)).toBeDefined();
    });

    test("a login and a change of password never miss each other", async () => {
      for (let i = 0; i < 10; i += 1) {
        const ada = await user();
        const login = () =>
          store.write(async (tx) => {
            if (!(await holdFactors(tx, factorsOf(ada)))) return false;
            await addSession(tx, {
              hash: `race-${ada}`,
              kind: "login",
              user_id: ada,
              agent_id: null,
              parent: null,
              limited: 0,
              created_at: NOW,
              expires_at: NOW + 1000,
            });
            return true;
          });
        const change = () =>
          store.write(async (tx) => {
            await changeUser(tx, ada, { password_hash: "new" });
            await endSessions(tx, ada, ["login"], null, NOW);
          });
        const both = i % 2 === 0 ? [login(), change()] : [change(), login()];
        const admitted = (await Promise.all(both)).includes(true);
        expect((await findSession(db, `race-${ada}`))?.ended_at).toBe(admitted ? NOW : undefined);
      }
    });

    test("room for another login is made by ending the oldest, then by deleting it and its sessions", async () => {
      const ada = await user();
      const add = async (
        hash: string,
        kind: "login" | "client",
        parent: string | null,
        at: number,
      ) => {
        const session = { hash: `${hash}-${ada}`, kind, user_id: ada, agent_id: null, limited: 0 };
        const times = { created_at: at, expires_at: NOW + 1000 };
        await addSession(db, { ...session, ...times, parent: parent && `${parent}-${ada}` });
      };
      await add("one", "login", null, NOW);
      await add("child", "client", "one", NOW);
      await makeRoom(db, ada, 1, NOW);
      expect((await findSession(db, `child-${ada}`))?.ended_at).toBe(NOW);
      await add("two", "login", null, NOW + 1);
      await makeRoom(db, ada, 1, NOW);
      expect(await findSession(db, `one-${ada}`)).toBeUndefined();
      expect(await findSession(db, `child-${ada}`)).toBeUndefined();
      expect((await findSession(db, `two-${ada}`))?.ended_at).toBe(NOW);
    });

    test("of a token's sessions the unused end first, but not the newest, then the oldest", async () => {
      const ada = await user();
      const parent = `acct-${ada}`;
      const add = async (hash: string, at: number, requests: number) => {
        const session = {
          hash: `${hash}-${ada}`,
          kind: "client",
          user_id: ada,
          agent_id: null,
          parent,
          limited: 0,
          created_at: NOW + at,
          expires_at: NOW + 1000,
        } as const;
        await addWithRoom(db, session, 8, NOW, 1);
        await addRequestsUsed(db, { hash: `${hash}-${ada}`, requests });
      };
      const token = { user_id: ada, agent_id: null, nonce: "n", issued_at: NOW, retired_at: null };
      await addToken(db, { ...token, kind: "account", hash: parent });
      const ended: string[] = [];
      const lookWhichEnded = async () => {
        const isOver = await Promise.all(
          [...names].map(async (name) => (await findSession(db, `${name}-${ada}`))?.ended_at),
        );
        ended.push(...[...names].filter((name, i) => isOver[i] !== null && !ended.includes(name)));
      };
      // Of 8, two that are unused are spared.
      const names = "abcdefgh";
      for (const [at, name] of [...names].entries()) {
        await add(name, at, "bcefgh".includes(name) ? 0 : 1);
      }
      for (let i = 0; i < 6; i += 1) {
        await add(`more-${i}`, 100 + i, 1); // in use at once
        await lookWhichEnded();
      }
      expect(ended).toEqual(["b", "c", "e", "f", "a", "d"]);
    });

    test("a login concurrent with a disabling is refused, and stays invalid once enabled", async () => {
      const ada = await user();
      expect(await store.write((tx) => holdFactors(tx, factorsOf(ada)))).toBe(true);
      await changeUser(db, ada, { disabled_at: NOW });
      expect(await store.write((tx) => holdFactors(tx, factorsOf(ada)))).toBe(false);
    });

    test("a transaction that fails leaves nothing, and concurrent ones wait for it", async () => {
      const ada = await user();
      const failing = store.write(async (tx) => {
        await addAgent(tx, {
          agent_id: "tx-1",
          user_id: ada,
          name: "n",
          metadata: "{}",
          created_at: NOW,
        });
        throw new Error("on purpose");
      });
      const beside = agent(ada, "tx-2");
      await expect(failing).rejects.toThrow("on purpose");
      expect(await beside).toBe(true);
      expect(await ownerOf(db, "tx-1")).toBeNull();
      expect(await ownerOf(db, "tx-2")).toBe(ada);
    });

    test("concurrent work commits together, but fails separately", async () => {
      const ada = await user();
      const add = (agent_id: string, fails = false) =>
        store.write(async (tx) => {
          await addAgent(tx, {
            agent_id,
            user_id: ada,
            name: "n",
            metadata: "{}",
            created_at: NOW,
          });
          if (fails) throw new Error(agent_id);
          return agent_id;
        });
      const names = Array.from({ length: 600 }, (_, i) => `${ada}-${i}`);
      const settled = await Promise.allSettled(names.map((name, i) => add(name, i % 7 === 3)));
      for (const [i, outcome] of settled.entries()) {
        expect(outcome.status).toBe(i % 7 === 3 ? "rejected" : "fulfilled");
      }
      const kept = (await listAgents(db, ada, null, 1000)).map((row) => row.agent_id);
      expect(new Set(kept)).toEqual(new Set(names.filter((_, i) => i % 7 !== 3)));
    });
  });
}

test("a SQLite store is readable only by its owner, has a log, and is not created by accident", async () => {
  const engine = sqlite();
  const location = await engine.prepare();
  await expect(openStore(location, false)).rejects.toThrow(StoreMissing);
  const { db, close } = await openStore(location, true);
  if (location.engine === "sqlite") expect(statSync(location.path).mode & 0o777).toBe(0o600);
  expect((await sql`pragma journal_mode`.execute(db)).rows).toEqual([{ journal_mode: "wal" }]);
  expect((await sql`pragma synchronous`.execute(db)).rows).toEqual([{ synchronous: 1 }]);
  await close();
  await engine.remove();
});

test("another process writes after a transaction that has begun by reading, not during it", async () => {
  const engine = sqlite();
  const location = await engine.prepare();
  const { write, close } = await openStore(location, true);
  const other = new DatabaseSync(location.engine === "sqlite" ? location.path : "");
  const change = "insert into settings (name, value) values ('totp', 'x')";
  await write(async (tx) => {
    await readSetting(tx, "totp");
    expect(() => other.exec(change)).toThrow("locked");
    await writeSetting(tx, "master_key_check", "x");
  });
  other.exec(change);
  other.close();
  await close();
  await engine.remove();
});

test("a login query is rejected after the store was closed, and does not throw", async () => {
  const engine = sqlite();
  const { db, close } = await openStore(await engine.prepare(), true);
  await close();
  await expect(findToken(db, "hash")).rejects.toThrow();
  await engine.remove();
});

/** How SQLite finds the rows of the query that `read` makes. */
const planOf = async (db: Db, read: () => Promise<unknown>): Promise<unknown> => {
  const prepare = vi.spyOn(DatabaseSync.prototype, "prepare");
  await read();
  const [text] = prepare.mock.calls.at(-1) as [string];
  prepare.mockRestore();
  const { rows } = await sql<{ detail: string }>`explain query plan ${sql.raw(text)}`.execute(db);
  return rows[0]?.detail;
};

test("a search through a user's agents begins where it should, and reads no metadata", async () => {
  const engine = sqlite();
  const { db, close } = await openStore(await engine.prepare(), true);
  const filter = { name: "n", runtime: "node", firmwareVersion: "1.0.0" };
  const plan = await planOf(db, () => listAgents(db, "ada", { at: NOW, id: "a" }, 64, filter));
  expect(plan).toContain("COVERING INDEX agent_lists (user_id=? AND created_at>?)");
  await close();
  await engine.remove();
});

test("agents of a page are read by their identifiers, however many the user has", async () => {
  const engine = sqlite();
  const { db, close } = await openStore(await engine.prepare(), true);
  const plan = await planOf(db, () => findAgents(db, "ada", [..."abcdefgh"]));
  expect(plan).toContain("(agent_id=?)");
  await close();
  await engine.remove();
});

const server = postgres();
test.skipIf(server.skipped)(
  "PostgreSQL ending idle connections, as at a restart, does not end the relay",
  async () => {
    const location = await server.prepare();
    const { db, close } = await openStore(location, true);
    const { sql } = await import("kysely");
    const ended = sql`select pg_terminate_backend(pid) from pg_stat_activity
    where pid = any(${await backends(db)}) and pid <> pg_backend_pid()`;
    await ended.execute(db);
    await vi.waitUntil(async () => (await readSetting(db, "totp").catch(() => "away")) === null, {
      timeout: 30_000,
    });
    await close();
    await server.remove();
  },
);

/** The processes behind two connections of a store's pool. */
const backends = async (db: Db): Promise<number[]> => {
  const pid = sql<{ pid: number }>`select pg_backend_pid() as pid from pg_sleep(0.05)`;
  const both = await Promise.all([pid.execute(db), pid.execute(db)]);
  return both.map(({ rows }) => (rows[0] as { pid: number }).pid);
};
