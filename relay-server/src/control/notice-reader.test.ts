/**
 * How a relay handles notices: each once, however it learned of it, and whenever it was committed.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Notice, postNotice } from "../store/notices.ts";
import { openStore, type Store } from "../store/open.ts";
import { postgres, sqlite } from "../store/testing/engines.ts";
import { NoticeReader } from "./notice-reader.ts";

const HOUR_MS = 3_600_000;

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
      const act = ({ subject }: Notice) => done.push(subject);
      const reader = await NoticeReader.open(store.db, act, () => clock.nowMs);
      return { reader, done, clock };
    };
    const post = (subject: string) => postNotice(store.db, "end_agent", subject, 1, null);

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
        for (const subject of subjects) await postNotice(tx, "end_agent", subject, 1, null);
      });
      await reader.look();
      expect(done).toEqual(subjects);
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
          await postNotice(tx, "end_agent", "slow", 1, null);
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
