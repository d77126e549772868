/** Releases, uploads, users, audit and stored answers, on both engines. */
import { randomBytes, randomUUID } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { noteVersions } from "../control/booted.ts";
import { addAgent, changeAgent, heldBy, listAgents, removeAgent, writeSighting } from "./agents.ts";
import { forgetActs, listActs, noteAct } from "./audit.ts";
import { claimIdempotent, findIdempotent, trimIdempotent } from "./idempotency.ts";
import { currentTokens, grantGrace } from "./key-rotation.ts";
import { type Db, openStore, type Store } from "./open.ts";
import {
  addRelease,
  changeRelease,
  confirmOffers,
  findRelease,
  leftBy,
  listReleases,
  noteOffer,
  publishedReleases,
  rolloutCounts,
} from "./releases.ts";
import { addSession, findSession } from "./sessions.ts";
import { writeSetting } from "./settings.ts";
import { postgres, sqlite } from "./testing/engines.ts";
import { addToken, findToken, forgetTokens, retireAllTokens, retireTokens } from "./tokens.ts";
import { addPart, beginUpload, dropUpload, forgetUploads, readPart } from "./uploads.ts";
import { addUser, changeUser, countAdmins, listUsers, removeUser } from "./users.ts";

const NOW = 1_800_000_000_000;

for (const engine of [sqlite(), postgres()]) {
  describe.skipIf(engine.skipped)(engine.name, () => {
    let store: Store;
    let db: Db;
    beforeAll(async () => {
      store = await openStore(await engine.prepare(), true);
      db = store.db;
      await writeSetting(db, "master_key_check", "check");
    });
    afterAll(async () => {
      await store?.close();
      await engine.remove();
    });

    const user = async (role: "user" | "admin" = "user"): Promise<string> => {
      const id = randomUUID();
      const row = { id, username: id, role, password_hash: "-", created_at: NOW };
      await addUser(db, { ...row, totp_secret: null, totp_confirmed: 0 });
      return id;
    };
    const agent = async (user_id: string, name = "n"): Promise<string> => {
      const agent_id = randomUUID();
      await addAgent(db, { agent_id, user_id, name, metadata: "{}", created_at: NOW });
      return agent_id;
    };
    const release = async (version: string, channel: string): Promise<string> => {
      const id = randomUUID();
      const names = { id, runtime: "node", channel, version, notes: "" };
      expect(await addRelease(db, { ...names, status: "draft", created_at: NOW })).toBe(true);
      return id;
    };

    test("agents are found by the beginning of name and runtime", async () => {
      const ada = await user();
      const [a] = [await agent(ada, "Pump_1"), await agent(ada, "PumpX1")];
      await writeSighting(db, a, NOW, { runtime: "node 26", firmwareVersion: "1.0.0" });
      const found = async (filter: object) =>
        (await listAgents(db, ada, null, 10, filter)).map((row) => row.agent_id);
      expect(await found({ name: "Pump_" })).toEqual([a]);
      expect(await found({ name: "pump" })).toEqual([]);
      expect(await found({ runtime: "node", firmwareVersion: "1.0.0" })).toEqual([a]);
    });

    test("a release keeps the numbers and signatures of its second text", async () => {
      const id = await release("1.0.0", randomUUID());
      const none = { list: null, not_after: null, signatures: "[]" };
      expect(await findRelease(db, id)).toMatchObject(none);
      const most = Number.MAX_SAFE_INTEGER;
      const given = { list: most, not_after: most, signatures: '[{"key_id":"k"}]' };
      await changeRelease(db, id, "draft", given);
      expect(await findRelease(db, id)).toMatchObject(given);
    });

    test("a release's version is taken once, and changes only from the state that was read", async () => {
      const channel = randomUUID();
      const id = await release("1.0.0", channel);
      const again = { id: randomUUID(), runtime: "node", channel, version: "1.0.0", notes: "" };
      expect(await addRelease(db, { ...again, status: "draft", created_at: NOW })).toBe(false);
      const change = { status: "published", published_at: NOW } as const;
      expect((await changeRelease(db, id, "draft", change))?.status).toBe("published");
      expect(await changeRelease(db, id, "draft", change)).toBeUndefined();
      expect(await publishedReleases(db, channel, "node")).toHaveLength(1);
      expect(await publishedReleases(db, channel, "espruino")).toHaveLength(0);
      const shown = await listReleases(db, { channel, drafts: false }, null, 10);
      expect(shown.map((row) => row.id)).toEqual([id]);
    });

    test("a device is counted as offered once, and as confirmed only for that version", async () => {
      const channel = randomUUID();
      const id = await release("1.4.0", channel);
      const [one, two] = [await agent(await user()), await agent(await user())];
      for (const each of [one, one, two]) await noteOffer(db, id, each, NOW);
      await confirmOffers(db, { agentId: one, version: "1.4.1", nowMs: NOW });
      expect((await rolloutCounts(db, [id])).get(id)).toMatchObject({ offered: 2, confirmed: 0 });
      await confirmOffers(db, { agentId: one, version: "1.4.0", nowMs: NOW });
      await confirmOffers(db, { agentId: one, version: "1.4.0", nowMs: NOW + 1 });
      expect((await rolloutCounts(db, [id])).get(id)).toMatchObject({ offered: 2, confirmed: 1 });
    });

    test("an older version after it counts as left, until the device boots it again", async () => {
      const id = await release("1.4.0", randomUUID());
      const one = await agent(await user());
      await noteOffer(db, id, one, NOW);
      const counts = async () => (await rolloutCounts(db, [id])).get(id);
      const logsIn = async (...versions: string[]): Promise<void> => {
        await noteVersions(db, one, versions, NOW);
        const firmwareVersion = versions.at(-1) as string;
        await writeSighting(db, one, NOW, { runtime: "node", firmwareVersion });
      };
      await logsIn("1.3.0");
      expect(await counts()).toEqual({ offered: 1, confirmed: 0, running: 0, left: 0 });
      await logsIn("1.4.0");
      expect(await counts()).toEqual({ offered: 1, confirmed: 1, running: 1, left: 0 });
      await logsIn("1.3.0");
      expect(await counts()).toEqual({ offered: 1, confirmed: 1, running: 0, left: 1 });
      expect(await leftBy(db, one, [id, randomUUID()])).toEqual(new Set([id]));
      await logsIn("1.4.0");
      expect(await counts()).toEqual({ offered: 1, confirmed: 1, running: 1, left: 0 });
      await logsIn("1.5.0");
      expect(await counts()).toEqual({ offered: 1, confirmed: 1, running: 0, left: 0 });
      // Both logins lie between two writes.
      await logsIn("1.4.0", "1.3.0");
      expect(await counts()).toEqual({ offered: 1, confirmed: 1, running: 0, left: 1 });
    });

    test("the parts of an upload are read back unchanged, and deleted with it; leftovers are removed", async () => {
      const [named, left] = [randomUUID(), randomUUID()];
      const bytes = randomBytes(1000);
      for (const id of [named, left]) {
        await beginUpload(db, id, NOW);
        await addPart(db, id, 0, bytes);
      }
      expect(Buffer.from((await readPart(db, named, 0)) as Uint8Array).equals(bytes)).toBe(true);
      const piece = (await readPart(db, named, 0, 990, 20)) as Uint8Array;
      expect(Buffer.from(piece).equals(bytes.subarray(990))).toBe(true);
      const id = await release("2.0.0", randomUUID());
      await changeRelease(db, id, "draft", { upload_id: named, size: 1000 });
      expect((await findRelease(db, id))?.size).toBe(1000);
      await forgetUploads(db, NOW);
      expect(await readPart(db, left, 0)).toBeDefined();
      await forgetUploads(db, NOW + 1);
      expect(await readPart(db, left, 0)).toBeUndefined();
      expect(await readPart(db, named, 0)).toBeDefined();
      await expect(dropUpload(db, named)).rejects.toThrow(); // the release names it
    });

    test("an entry has its actor's name at that time, even after the actor is deleted", async () => {
      const ada = await user();
      const act = { actorId: ada, action: "agent.create", subject: randomUUID() } as const;
      await store.write((tx) => noteAct(tx, NOW, { ...act, detail: { name: "x" } }));
      await removeUser(db, ada);
      const [entry] = await listActs(db, { subject: act.subject }, null, 10);
      expect(entry).toMatchObject({ actor: ada, actor_id: ada, at: NOW, detail: '{"name":"x"}' });
    });

    test("the audit log deletes what is old, and of each actor all but the newest", async () => {
      const [ada, eve] = [await user(), await user()];
      const subject = randomUUID();
      const note = (actorId: string | null, at: number) =>
        noteAct(db, at, { actorId, action: "agent.export", subject });
      for (const [actor, at] of [
        [ada, NOW - 1],
        [ada, NOW],
        [null, NOW],
      ] as const) {
        await note(actor, at);
      }
      for (let i = 1; i <= 5; i += 1) await note(eve, NOW + i);
      await forgetActs(db, NOW, 3);
      const left = (await listActs(db, { subject }, null, 10)).map((row) => [row.actor_id, row.at]);
      expect(left.filter(([actor]) => actor === eve).map(([, at]) => at)).toEqual([
        NOW + 5,
        NOW + 4,
        NOW + 3,
      ]);
      expect(left.filter(([actor]) => actor !== eve)).toHaveLength(2);
      expect(left).toContainEqual([ada, NOW]);
      expect(left).toContainEqual([null, NOW]);
    });

    test("retention deletes a few rows at a time, with a turn for others in between", async () => {
      const busy = await user();
      const subject = randomUUID();
      await store.write(async (tx) => {
        for (let i = 0; i < 350; i += 1) {
          await noteAct(tx, NOW + i, { actorId: busy, action: "agent.export", subject });
        }
      });
      let turns = 0;
      let goesOn = true;
      const count = (): void => {
        turns += 1;
        if (goesOn) setTimeout(count);
      };
      setTimeout(count);
      await forgetActs(db, NOW, 50);
      goesOn = false;
      expect(await listActs(db, { subject }, null, 400)).toHaveLength(50);
      expect(turns).toBeGreaterThanOrEqual(3);
    });

    test("the totals of a user's agents follow every change", async () => {
      const ada = await user();
      expect(await heldBy(db, ada)).toEqual({ agents_held: 0, metadata_bytes: 0 });
      const [a] = [await agent(ada), await agent(ada)];
      await changeAgent(db, ada, a, { metadata: '{"ü":1}' });
      await changeAgent(db, ada, a, { name: "other" });
      await writeSighting(db, a, NOW, null);
      expect(await heldBy(db, ada)).toEqual({ agents_held: 2, metadata_bytes: 8 + 2 });
      await removeAgent(db, ada, a);
      expect(await heldBy(db, ada)).toEqual({ agents_held: 1, metadata_bytes: 2 });
      expect(await removeUser(db, ada)).toBe(true);
    });

    test("two admins who demote each other concurrently: one of the transactions sees the other", async () => {
      const [one, two] = [await user("admin"), await user("admin")];
      const demote = (id: string) =>
        store.write(async (tx) => {
          await countAdmins(tx);
          await changeUser(tx, id, { role: "user" });
          if ((await countAdmins(tx)) === 0) throw new Error("the last one");
        });
      const outcomes = await Promise.allSettled([demote(one), demote(two)]);
      expect(outcomes.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
      expect(await store.write((tx) => countAdmins(tx))).toBe(1);
    });

    test("what a disabled user holds ends, but not permanently", async () => {
      const ada = await user();
      const hash = randomUUID();
      const token = { hash, kind: "account", user_id: ada, agent_id: null, nonce: "n" } as const;
      await addToken(db, { ...token, issued_at: NOW, retired_at: null });
      const session = { hash: `s-${hash}`, kind: "client", user_id: ada, agent_id: null } as const;
      const times = { created_at: NOW, expires_at: NOW + 1000 };
      await addSession(db, { ...session, ...times, parent: hash, limited: 0 });
      await changeUser(db, ada, { disabled_at: NOW });
      expect((await findToken(db, hash))?.retired_at).toBe(NOW);
      expect((await findSession(db, `s-${hash}`))?.ended_at).toBe(NOW);
      await changeUser(db, ada, { disabled_at: null });
      expect((await findToken(db, hash))?.retired_at).toBeNull();
      expect((await findSession(db, `s-${hash}`))?.ended_at).toBeNull();
      expect((await listUsers(db, null, 1000)).some(({ id }) => id === ada)).toBe(true);
    });

    test("a retired token keeps its grace period until a rotation, and is remembered through it", async () => {
      const ada = await user();
      const hashes = [randomUUID(), randomUUID()] as const;
      const token = { kind: "agent", user_id: ada, nonce: "n", issued_at: NOW } as const;
      for (const [index, hash] of hashes.entries()) {
        await addToken(db, { ...token, hash, agent_id: `${ada}-${index}`, retired_at: null });
        expect((await currentTokens(db)).some((row) => row.hash === hash)).toBe(true);
        await retireTokens(db, { userId: ada, agentId: `${ada}-${index}` }, NOW);
        await grantGrace(db, hash, NOW + 1000);
      }
      await forgetTokens(db, NOW + 500);
      const goodUntil = async (hash: string) => (await findToken(db, hash))?.good_until;
      expect(await goodUntil(hashes[0])).toBe(NOW + 1000);
      await retireTokens(db, { userId: ada, agentId: `${ada}-0` }, NOW + 10);
      expect([await goodUntil(hashes[0]), await goodUntil(hashes[1])]).toEqual([null, NOW + 1000]);
      expect((await findToken(db, hashes[0]))?.retired_at).toBe(NOW);
      await retireAllTokens(db, ada, NOW + 10);
      expect(await goodUntil(hashes[1])).toBeNull();
      await forgetTokens(db, NOW + 5000);
      expect(await findToken(db, hashes[1])).toBeUndefined();
    });

    test("a user's key is taken once, and the oldest are deleted", async () => {
      const ada = await user();
      const claim = (key: string, at: number) =>
        claimIdempotent(db, { user_id: ada, key, request: "r", created_at: at });
      const tries = await Promise.all([1, 2, 3].map(() => claim("k", NOW)));
      expect(tries.filter(Boolean)).toHaveLength(1);
      for (let i = 1; i <= 4; i += 1) await claim(`k${i}`, NOW + i);
      await trimIdempotent(db, ada, false, NOW, 3);
      expect(await findIdempotent(db, ada, "k1")).toBeUndefined();
      expect(await findIdempotent(db, ada, "k2")).toBeDefined();
      await trimIdempotent(db, ada, false, NOW + 4, 3);
      expect(await findIdempotent(db, ada, "k3")).toBeUndefined();
      expect(await findIdempotent(db, ada, "k4")).toBeDefined();
    });

    test("a user's own keys outlive any number that access keys sent, and these each other's oldest", async () => {
      const ada = await user();
      const claim = (key: string, at: number) =>
        claimIdempotent(db, { user_id: ada, key, request: "r", created_at: at });
      await claim("own", NOW);
      for (let i = 1; i <= 4; i += 1) {
        await trimIdempotent(db, ada, true, NOW, 3);
        await claim(`id-${i} own`, NOW + i);
      }
      await trimIdempotent(db, ada, true, NOW, 3);
      expect(await findIdempotent(db, ada, "own")).toBeDefined();
      expect(await findIdempotent(db, ada, "id-1 own")).toBeUndefined();
      expect(await findIdempotent(db, ada, "id-2 own")).toBeDefined();
    });
  });
}
