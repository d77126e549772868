/**
 * How a relay handles notices: each once, however it learned of it, and whenever it was committed.
 */
import { sql } from "kysely";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { forgetNotices, type Notice, noticesIn, postNotices } from "../store/notices.ts";
import { openStore, type Store } from "../store/open.ts";
import { postgres, sqlite } from "../store/testing/engines.ts";
import { NoticeReader } from "./notice-reader.ts";

const HOUR_MS = 3_600_000;
const WALL_MS = 2_000_000_000_000;

for (const engine of [sqlite(), postgres()]) {
  describe.skipIf(engine.skipped)(engine.name, () => {
    let store: Store;
    beforeAll(async () => {
      store = await openStore(await engine.prepare(), true);
    });
    afterAll(async () => {
      await store.close();
      await engine.remove();
    });

    const open = async () => {
      const clock = { nowMs: 0 };
      const done: string[] = [];
      const lost: Notice[] = [];
      const source = noticesIn(store.db);
      const reader = await NoticeReader.open({
        source,
        act: ({ subject }) => done.push(subject),
        onChanged: (notice) => lost.push(notice),
        nowMs: () => clock.nowMs,
        wallMs: () => WALL_MS + clock.nowMs,
      });
      return { reader, done, lost, clock, source };
    };
    const post = async (subject: string, atMs = 1) => {
      const [notice] = await postNotices(store.db, "end_agent", [subject], atMs, null);
      return notice as Notice;
    };
    /** The database is now a standby that had read this notice, and nothing after it. */
    const failOver = async ({ seq }: Notice) => {
      await store.db.deleteFrom("notices").where("seq", ">", seq).execute();
      if (engine.name === "SQLite") {
        await sql`update sqlite_sequence set seq = ${seq} where name = 'notices'`.execute(store.db);
      } else {
        await sql`select setval(pg_get_serial_sequence('notices', 'seq'), ${seq}::bigint)`.execute(
          store.db,
        );
      }
    };

    test("notices that exist at the start are skipped, later ones are handled once", async () => {
      await post("before");
      const { reader, done, clock } = await open();
      const one = await post("one");
      reader.take(one); // another node announced it
      await reader.look();
      await post("two");
      await reader.look();
      clock.nowMs += HOUR_MS;
      await reader.look();
      reader.take(one);
      await reader.look();
      expect(done).toEqual(["one", "two"]);
    });

    test("many at once are all handled", async () => {
      const { reader, done } = await open();
      const subjects = Array.from({ length: 2500 }, (_, i) => `many-${i}`);
      await store.write(async (tx) => {
        for (const subject of subjects) await postNotices(tx, "end_agent", [subject], 1, null);
      });
      await reader.look();
      expect(done).toEqual(subjects);
    });

    test("after a failover to a standby that had missed some, new ones under old numbers are handled, on the node that posts them and on others", async () => {
      const kept = await post("kept", WALL_MS);
      const nodes = [await open(), await open()];
      const [own, other] = nodes as [(typeof nodes)[0], (typeof nodes)[0]];
      const lookAll = async () => {
        for (const { reader } of nodes) await reader.look();
      };
      for (let n = 0; n < 10; n += 1) await post(`lost-${n}`, WALL_MS + n);
      await lookAll();
      for (const { clock, done } of nodes) {
        clock.nowMs += HOUR_MS; // so that the numbers have settled
        done.splice(0);
      }
      await lookAll();
      await failOver(kept);
      const quick = await post("quick", WALL_MS + HOUR_MS);
      own.reader.take(quick);
      expect(own.done).toEqual(["quick"]);
      await lookAll();
      const slow = await post("slow", WALL_MS + HOUR_MS + 1);
      other.reader.hear([slow]);
      await lookAll();
      for (const { clock } of nodes) clock.nowMs += HOUR_MS;
      await lookAll();
      expect(nodes.map(({ done }) => done)).toEqual(Array(2).fill(["quick", "slow"]));
      expect(nodes.map(({ reader }) => reader.changes)).toEqual([1, 1]);
      expect(other.lost).toMatchObject([{ subject: "lost-9" }]);
    });

    test("new ones are handled even if there are more of them than were lost", async () => {
      const kept = await post("kept", WALL_MS);
      const { reader, done, clock } = await open();
      await post("lost", WALL_MS);
      await reader.look();
      clock.nowMs += HOUR_MS;
      await reader.look();
      await failOver(kept);
      const subjects = Array.from({ length: 1500 }, (_, i) => `new-${i}`);
      await store.write(async (tx) => {
        for (const subject of subjects)
          await postNotices(tx, "end_agent", [subject], WALL_MS + 1, null);
      });
      await reader.look();
      await reader.look();
      expect(done).toEqual(["lost", ...subjects]);
      expect(reader.changes).toBe(1);
    });

    test("what retention deletes does not look like a failover", async () => {
      const { reader, done, clock } = await open();
      for (const subject of ["one", "two"]) await post(subject, WALL_MS);
      await reader.look();
      clock.nowMs += 48 * HOUR_MS;
      await reader.look();
      await forgetNotices(store.db, WALL_MS + 24 * HOUR_MS);
      await reader.look();
      await post("three", WALL_MS + 48 * HOUR_MS);
      await reader.look();
      expect(done).toEqual(["one", "two", "three"]);
      expect(reader.changes).toBe(0);
    });

    test("what another node sends is handled even if the store cannot be read, and once", async () => {
      const { reader, done, source } = await open();
      const { list } = source;
      source.list = async () => {
        throw new Error("the store is away");
      };
      reader.hear([await post("heard")]);
      expect(done).toEqual(["heard"]);
      await reader.look().catch(() => undefined);
      source.list = list;
      await reader.look();
      expect(done).toEqual(["heard"]);
    });

    test.skipIf(engine.name === "SQLite")(
      "one that commits after a later one was read is handled",
      async () => {
        const { reader, done, clock } = await open();
        let commit = () => {};
        const held = new Promise<void>((resolve) => {
          commit = resolve;
        });
        let posted = () => {};
        const isPosted = new Promise<void>((resolve) => {
          posted = resolve;
        });
        const slow = store.db.transaction().execute(async (tx) => {
          await postNotices(tx, "end_agent", ["slow"], 1, null);
          posted();
          await held;
        });
        await isPosted;
        await post("quick");
        await reader.look();
        clock.nowMs += 30_000;
        await reader.look();
        expect(done).toEqual(["quick"]);
        commit();
        await slow;
        await reader.look();
        expect(done).toEqual(["quick", "slow"]);
      },
    );
  });
}
