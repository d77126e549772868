/**
 * Concurrent changes, from one node and from two, on both engines, because PostgreSQL runs
 * transactions side by side while SQLite has one writer. A SQLite store has one relay, so there
 * both nodes are the same.
 */
import { randomUUID } from "node:crypto";
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { issuePersistent, issueSession } from "../control/issue.ts";
import { hashToken, Secrets } from "../control/secrets.ts";
import { storeWriteBehind } from "../control/write-behind.ts";
import { addKey, findKey } from "./access-keys.ts";
import { addAgent, findAgent } from "./agents.ts";
import { holdKey, replaceKeyCheck } from "./key-rotation.ts";
import { type Db, openStore, type Store } from "./open.ts";
import { addRelease, changeRelease, noteOffer, rolloutCounts } from "./releases.ts";
import { addSession, addWithRoom, findSession } from "./sessions.ts";
import { writeSetting } from "./settings.ts";
import { postgres, sqlite } from "./testing/engines.ts";
import { findToken } from "./tokens.ts";
import { addUser, failTotp, findUser, removeUser } from "./users.ts";

const NOW = 1_800_000_000_000;
const secrets = new Secrets(new Uint8Array(32));

for (const engine of [sqlite(), postgres()]) {
  describe.skipIf(engine.skipped)(engine.name, () => {
    let nodes: [Store, Store];
    let db: Db;
    beforeAll(async () => {
      const location = await engine.prepare();
      const one = await openStore(location, true);
      nodes = [one, engine.name === "SQLite" ? one : await openStore(location, false)];
      db = one.db;
    });
    afterAll(async () => {
      await Promise.all([...new Set(nodes)].map((node) => node.close()));
      await engine.remove();
    });

    const user = async (): Promise<string> => {
      const id = randomUUID();
      const row = { id, username: id, role: "user", password_hash: "-", created_at: NOW } as const;
      await addUser(db, { ...row, totp_secret: null, totp_confirmed: 0 });
      return id;
    };
    const agent = async (): Promise<string> => {
      const agent_id = randomUUID();
      const row = { agent_id, name: "n", metadata: "{}", created_at: NOW };
      await addAgent(db, { ...row, user_id: await user() });
      return agent_id;
    };
    const session = async (): Promise<string> => {
      const hash = randomUUID();
      const row = { hash, kind: "client", agent_id: null, parent: null, limited: 0 } as const;
      const times = { created_at: NOW, expires_at: NOW + 1000 };
      await addSession(db, { ...row, ...times, user_id: await user() });
      return hash;
    };

    test("a rotation of the master key waits for what the old key seals, and nothing is sealed after it", async () => {
      const [old, fresh] = [secrets.check(), "fresh"];
      await writeSetting(db, "master_key_check", old);
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const ends: string[] = [];
      const sealing = nodes[0].write(async (tx) => {
        await holdKey(tx, old);
        begin();
        await mayEnd;
        ends.push("sealed");
      });
      await begun;
      const rotating = nodes[1].write(async (tx) => {
        expect(await replaceKeyCheck(tx, old, fresh)).toBe(true);
        ends.push("rotated");
      });
      await new Promise((resolve) => setTimeout(resolve, 100));
      end();
      await Promise.all([sealing, rotating]);
      expect(ends).toEqual(["sealed", "rotated"]);
      await expect(nodes[0].write((tx) => holdKey(tx, old))).rejects.toThrow("was rotated");
      await db.deleteFrom("settings").where("name", "=", "master_key_check").execute();
    });

    test.skipIf(engine.name === "SQLite")(
      "a login that has a row which a rotation of the master key wants ends, and the rotation goes on",
      async () => {
        const [old, id] = [secrets.check(), await user()];
        await writeSetting(db, "master_key_check", old);
        const { promise: held, resolve: hasRow } = Promise.withResolvers<void>();
        const { promise: begun, resolve: rotates } = Promise.withResolvers<void>();
        const touch = (tx: Db) =>
          tx.updateTable("users").set({ totp_confirmed: 0 }).where("id", "=", id).execute();
        const login = nodes[0].write(async (tx) => {
          await touch(tx);
          hasRow();
          await begun;
          await holdKey(tx, old);
        });
        await held;
        const rotating = nodes[1].write(async (tx) => {
          await replaceKeyCheck(tx, old, "fresh");
          rotates();
          await touch(tx);
          return "rotated";
        });
        await expect(login).rejects.toThrow("is being rotated");
        expect(await rotating).toBe("rotated");
        await db.deleteFrom("settings").where("name", "=", "master_key_check").execute();
      },
    );

    test.skipIf(engine.name === "SQLite")(
      "logins of two accounts, in another order on each node, do not wait for each other",
      async () => {
        const [one, two] = [await user(), await user()];
        const both = Promise.withResolvers<void>();
        let runs = 0;
        const logIn = (tx: Db, parent: string) => {
          const row = { hash: randomUUID(), kind: "client", agent_id: null, limited: 0 } as const;
          const times = { created_at: NOW, expires_at: NOW + 1000 };
          return addWithRoom(tx, { ...row, ...times, user_id: parent, parent }, 8, NOW, 2);
        };
        const onNode = (node: Store, first: string, second: string) =>
          node.write(async (tx) => {
            runs += 1;
            await logIn(tx, first);
            if (runs === 2) both.resolve();
            await both.promise;
            await logIn(tx, second);
          });
        await Promise.all([onNode(nodes[0], one, two), onNode(nodes[1], two, one)]);
        expect(runs).toBe(2); // none was undone after a deadlock
      },
    );

    test("two concurrent rotations leave exactly one live token", async () => {
      for (let i = 0; i < 10; i += 1) {
        const owner = { userId: await user(), agentId: i % 2 === 0 ? null : randomUUID() };
        const rotate = (node: Store) =>
          node.write((tx) => issuePersistent(tx, secrets, owner, NOW));
        await Promise.all([0, 1, 0, 1].map((node) => rotate(nodes[node as 0 | 1])));
        const live = await db
          .selectFrom("tokens")
          .select("hash")
          .where("user_id", "=", owner.userId)
          .where("retired_at", "is", null)
          .execute();
        expect(live).toHaveLength(1);
      }
    });

    test("what is made with an account while its user is removed is good for nothing", async () => {
      const userId = await user();
      const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
      const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
      const making = nodes[0].write(async (tx) => {
        begin();
        if (engine.name === "SQLite") await mayEnd; // its only writer waits for the end
        const token = await issuePersistent(tx, secrets, { userId, agentId: null }, NOW);
        const key = { id: randomUUID(), hash: randomUUID(), name: "ci", scopes: "read" };
        const ends = { selector: null, created_at: NOW, expires_at: null };
        await addKey(tx, { ...key, ...ends, user_id: userId });
        const row = { hash: randomUUID(), kind: "login", agent_id: null, parent: null } as const;
        const times = { limited: 0, created_at: NOW, expires_at: NOW + 1000 };
        await addSession(tx, { ...row, ...times, user_id: userId });
        if (engine.name !== "SQLite") await mayEnd;
        return [hashToken(token), key.hash, row.hash] as const;
      });
      await begun;
      const removing = nodes[1].write((tx) => removeUser(tx, userId));
      if (engine.name !== "SQLite") expect(await removing).toBe(true);
      end();
      const [token, key, login] = await making;
      await removing;
      expect((await findToken(db, token))?.retired_at).toBe(NOW);
      expect((await findKey(db, key))?.removed_at).toBe(NOW);
      expect((await findSession(db, login))?.ended_at).toBe(NOW);
    });

    test("a second live token cannot be written", async () => {
      const [user_id, agent_id] = [await user(), randomUUID()];
      const token = { kind: "agent", nonce: "n", issued_at: NOW, retired_at: null } as const;
      const add = () =>
        db.insertInto("tokens").values({ ...token, hash: randomUUID(), user_id, agent_id });
      await add().execute();
      await expect(add().execute()).rejects.toThrow(/unique|UNIQUE/);
    });

    test("a token at its limit gives sessions to all concurrent requests, and keeps to the limit", async () => {
      const parent = {
        holder: "agent",
        hash: randomUUID(),
        userId: await user(),
        agentId: randomUUID(),
        limited: false,
        expiresAtMs: null,
        requestsUsed: 0,
        loginNumber: 0,
        key: null,
      } as const;
      const ask = (_: unknown, i: number) => issueSession(nodes[(i % 2) as 0 | 1], parent, NOW + i);
      await Promise.all(Array.from({ length: 200 }, ask));
      const live = await db
        .selectFrom("sessions")
        .select("hash")
        .where("parent", "=", parent.hash)
        .where("ended_at", "is", null)
        .execute();
      expect(live).toHaveLength(16);
    });

    test("the counts of two nodes add up, in any order", async () => {
      const [hash, agents] = [await session(), await Promise.all([0, 1, 2, 3].map(agent))];
      const ledgers = nodes.map((store) => storeWriteBehind(store));
      for (let round = 1; round <= 20; round += 1) {
        for (const [index, ledger] of ledgers.entries()) {
          await ledger.saveRequestsUsed(hash, round, 1);
          const inTurn = index === 0 ? agents : agents.toReversed();
          for (const id of inTurn) await ledger.agentSeen(id, NOW + round - index, null, false);
        }
        await Promise.all(ledgers.map((ledger) => ledger.flush()));
      }
      expect((await findSession(db, hash))?.requests_used).toBe(40);
      for (const id of agents) {
        const row = await db.selectFrom("agents").selectAll().where("agent_id", "=", id);
        expect((await row.executeTakeFirstOrThrow()).last_seen).toBe(NOW + 20);
      }
    });

    test("what could not be written is kept: counts, times, booted versions", async () => {
      const [hash, id] = [await session(), await agent()];
      const release = randomUUID();
      const names = { id: release, runtime: "node", channel: release, version: "2.0.0", notes: "" };
      await addRelease(db, { ...names, status: "draft", created_at: NOW });
      await changeRelease(db, release, "draft", { status: "published", published_at: NOW });
      await noteOffer(db, release, id, NOW);
      let away = true;
      const store: Store = {
        ...nodes[0],
        write: async (work) => {
          if (away) throw new Error("away");
          return nodes[0].write(work);
        },
      };
      const ledger = storeWriteBehind(store);
      await ledger.saveRequestsUsed(hash, 3, 3);
      await ledger.agentSeen(id, NOW + 1, { runtime: "node", firmwareVersion: "2.0.0" }, true);
      await expect(ledger.flush()).rejects.toThrow("away");
      await ledger.saveRequestsUsed(hash, 5, 2);
      await ledger.agentSeen(id, NOW + 2, null, false);
      await expect(ledger.flush()).rejects.toThrow("away");
      away = false;
      await ledger.flush();
      await ledger.flush(); // and once only
      expect((await findSession(db, hash))?.requests_used).toBe(5);
      const { user_id } = await db
        .selectFrom("agents")
        .select("user_id")
        .where("agent_id", "=", id)
        .executeTakeFirstOrThrow();
      const seen = await findAgent(db, user_id, id);
      expect(seen).toMatchObject({ last_seen: NOW + 2, firmware_version: "2.0.0" });
      expect((await rolloutCounts(db, [release])).get(release)?.confirmed).toBe(1);
    });

    test("a report that a node writes late leaves the newer one of the node that has the agent", async () => {
      const [id, release] = [await agent(), randomUUID()];
      const names = { id: release, runtime: "node", channel: release, version: "2.0.0", notes: "" };
      await addRelease(db, { ...names, status: "draft", created_at: NOW });
      await changeRelease(db, release, "draft", { status: "published", published_at: NOW });
      await noteOffer(db, release, id, NOW);
      const [late, other] = [
        storeWriteBehind(nodes[0], "late"),
        storeWriteBehind(nodes[1], "other"),
      ];
      await late.agentSeen(id, NOW + 1, { runtime: "node", firmwareVersion: "1.0.0" }, true);
      await other.agentSeen(id, NOW + 2, { runtime: "node", firmwareVersion: "2.0.0" }, true);
      await late.agentSeen(id, NOW + 3, null, false); // it has heard of that
      await other.flush();
      await late.flush();
      const row = await db.selectFrom("agents").selectAll().where("agent_id", "=", id);
      expect(await row.executeTakeFirstOrThrow()).toMatchObject({
        ...{ firmware_version: "2.0.0", node: "other", last_seen: NOW + 3 },
      });
      expect((await rolloutCounts(db, [release])).get(release)).toMatchObject({ left: 0 });
    });

    test("concurrent wrong codes on two nodes are all counted", async () => {
      const id = await user();
      const lockouts = { ms: [0, 0, 30_000, 60_000], nowMs: NOW };
      await Promise.all(
        [0, 1, 0, 1, 0].map((node) => failTotp(nodes[node as 0 | 1].db, id, lockouts)),
      );
      const row = await findUser(db, id);
      expect([row?.totp_failures, row?.totp_rests_until]).toEqual([5, NOW + 60_000]);
    });

    test.skipIf(engine.name === "SQLite")("concurrent work shares transactions", async () => {
      const transaction = (tx: Db) =>
        sql<{ id: string }>`select txid_current()::text as id`.execute(tx);
      const all = await Promise.all(Array.from({ length: 128 }, () => nodes[0].write(transaction)));
      expect(new Set(all.map(({ rows }) => rows[0]?.id)).size).toBeLessThanOrEqual(3);
    });

    test("two transactions that lock each other's rows both succeed", async () => {
      const ids = [await user(), await user()] as const;
      const both = (first: string, second: string, node: Store) =>
        node.write(async (tx) => {
          for (const id of [first, second]) {
            await tx.updateTable("users").set({ role: "user" }).where("id", "=", id).execute();
            // SQLite has one writer, so nobody can get in between.
            if (engine.name === "PostgreSQL") await sql`select pg_sleep(0.05)`.execute(tx);
          }
        });
      await Promise.all([both(ids[0], ids[1], nodes[0]), both(ids[1], ids[0], nodes[1])]);
    });
  });
}
