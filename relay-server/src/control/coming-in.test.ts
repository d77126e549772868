/**
 * The cost to the store of a fleet that reconnects, in counts: no query is compiled for a login,
 * and concurrent logins are committed together. Both engines.
 */
import { randomUUID } from "node:crypto";
import { type CompiledQuery, DefaultQueryCompiler, PostgresDriver, SqliteDriver } from "kysely";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { Lockout } from "../core/limits/lockout.ts";
import type { HubLink } from "../core/link.ts";
import { authOf, type Fields } from "../core/testing/test-hub.ts";
import { addAgent } from "../store/agents.ts";
import { groupCommit, REST_MS } from "../store/group-commit.ts";
import { openStore, type Store } from "../store/open.ts";
import { postgres, sqlite } from "../store/testing/engines.ts";
import { addUser } from "../store/users.ts";
import { type RunningHub, runHub } from "../ws/hub-driver.ts";
import { issuePersistent } from "./issue.ts";
import { Secrets } from "./secrets.ts";
import { storeLookups } from "./token-check.ts";
import { storeWriteBehind } from "./write-behind.ts";

const NOW = 1_800_000_000_000;
const FLEET = 100;
const secrets = new Secrets(new Uint8Array(32));

/** The first message sent on an agent's link. */
const logIn = ({ hub }: RunningHub, { agentId, apiToken }: { agentId: string; apiToken: string }) =>
  new Promise<Fields>((resolve) => {
    const link: HubLink = {
      send: (frame) => resolve(JSON.parse(frame.toString()) as Fields),
      queued: () => 0,
      close: () => {},
      pause: () => {},
      resume: () => {},
    };
    const text = JSON.stringify({ ...authOf(agentId), api_token: apiToken });
    hub.receive(hub.connect(link, agentId, NOW), text, Buffer.from(text), NOW);
  });

for (const [engine, driver] of [
  [sqlite(), SqliteDriver],
  [postgres(), PostgresDriver],
] as const) {
  describe.skipIf(engine.skipped)(engine.name, () => {
    let store: Store;
    let fleet: { agentId: string; apiToken: string }[];
    beforeAll(async () => {
      store = await openStore(await engine.prepare(), true);
      fleet = await Promise.all(Array.from({ length: FLEET }, makeAgent));
    });
    afterEach(() => {
      vi.useRealTimers();
    });
    afterAll(async () => {
      await store.close();
      await engine.remove();
    });

    const makeAgent = async () => {
      const userId = randomUUID();
      const agentId = randomUUID();
      const names = { id: userId, username: userId, role: "user", password_hash: "-" } as const;
      await addUser(store.db, { ...names, totp_secret: null, totp_confirmed: 0, created_at: NOW });
      const agent = { agent_id: agentId, user_id: userId, name: "n", metadata: "{}" };
      await addAgent(store.db, { ...agent, created_at: NOW });
      const owner = { userId, agentId };
      const apiToken = await store.write((tx) => issuePersistent(tx, secrets, owner, NOW));
      return { agentId, apiToken };
    };
    /** All in one turn of the loop, and then what is written afterwards. */
    const comeIn = async (agents: typeof fleet): Promise<void> => {
      const { authenticate } = storeLookups(store);
      const behind = storeWriteBehind(store);
      const common = { clientType: "agent", address: "192.0.2.1", nowMs: NOW } as const;
      const results = await Promise.all(agents.map((one) => authenticate({ ...one, ...common })));
      const report = { runtime: "node", firmwareVersion: "1.0.0" };
      for (const { agentId } of agents) await behind.agentSeen(agentId, NOW, report, true);
      await behind.flush();
      expect(results.every((result) => result.ok)).toBe(true);
      // With the session token, as after a short break.
      for (const result of results) {
        if (!result.ok || result.role !== "agent") throw new Error("refused");
        const { sessionToken, agentId } = result;
        expect((await authenticate({ ...common, agentId, sessionToken })).ok).toBe(true);
      }
    };

    test("a login compiles no SQL, even if room must be made for its session", async () => {
      for (let i = 0; i < 33; i++) await comeIn(fleet.slice(0, 1));
      const compile = vi.spyOn(DefaultQueryCompiler.prototype, "compileQuery");
      await comeIn(fleet);
      expect(compile.mock.results.map(({ value }) => (value as CompiledQuery).sql)).toEqual([]);
    });

    test("look-ups for a login are synchronous with SQLite, and promises otherwise", async () => {
      const { authenticate, ownerOf } = storeLookups(store);
      const [{ agentId, apiToken }] = fleet as [(typeof fleet)[number]];
      const common = { clientType: "agent", address: "192.0.2.1", agentId, nowMs: NOW } as const;
      const result = await authenticate({ ...common, apiToken });
      if (!result.ok) throw new Error("refused");
      const { sessionToken } = result;
      const ask = () => [
        authenticate({ ...common, sessionToken }),
        authenticate({ ...common, sessionToken: apiToken }),
        ownerOf(agentId),
        ownerOf("nobody"),
      ];
      const atHand = ask().filter((each) => !(each instanceof Promise));
      expect(atHand).toHaveLength(driver === SqliteDriver ? 4 : 0);
      const wrong = { ok: false, code: "WRONG_TOKEN_KIND" };
      const known = [{ ok: true, sessionToken }, wrong, result.userId, null];
      expect(await Promise.all(ask())).toMatchObject(known);
      // During another write, the visible data may still be undone.
      let during: unknown[] = [];
      const writing = store.write(async (tx) => {
        await tx.deleteFrom("agents").execute();
        await tx.deleteFrom("sessions").execute();
        during = ask();
        throw new Error("undone");
      });
      await expect(writing).rejects.toThrow("undone");
      expect(during.filter((each) => !(each instanceof Promise))).toEqual([]);
      expect(await Promise.all(during)).toMatchObject(known);
    });

    test.skipIf(driver === PostgresDriver)(
      "logins soon after a commit share the next",
      async () => {
        vi.useFakeTimers({ toFake: ["setTimeout", "performance"] });
        const disk = { prepare: async () => undefined, flush: async () => undefined };
        const write = groupCommit(store.db, "sqlite", disk); // as after a start
        const { authenticate } = storeLookups({ ...store, write });
        const common = { clientType: "agent", address: "192.0.2.1", nowMs: NOW } as const;
        const commit = vi.spyOn(driver.prototype, "commitTransaction");
        const [first, ...others] = fleet as [(typeof fleet)[number], ...typeof fleet];
        expect(await authenticate({ ...common, ...first })).toMatchObject({ ok: true });
        const results: unknown[] = [];
        for (const agent of others) {
          results.push(authenticate({ ...common, ...agent }));
          await new Promise((resolve) => setImmediate(resolve));
        }
        expect(commit).toHaveBeenCalledTimes(1);
        vi.advanceTimersByTime(REST_MS);
        expect(await Promise.all(results)).toMatchObject(others.map(() => ({ ok: true })));
        expect(commit).toHaveBeenCalledTimes(2);
      },
    );

    test("concurrent logins share their commits", async () => {
      const clocks = { steadyMs: () => NOW, wallMs: () => NOW };
      const log = { error: (...args: unknown[]) => expect(args).toEqual([]) };
      const writeBehind = { saveRequestsUsed: async () => {}, agentSeen: async () => {} };
      const lookups = storeLookups(store);
      const lockout = new Lockout();
      const running = runHub({ lookups, writeBehind, lockout, clocks, log });
      const commit = vi.spyOn(driver.prototype, "commitTransaction");
      const answers = await Promise.all(fleet.map((agent) => logIn(running, agent)));
      running.stop();
      expect(answers.every(({ status }) => status === "authenticated")).toBe(true);
      expect(commit.mock.calls.length).toBeLessThanOrEqual(5);
    });
  });
}
