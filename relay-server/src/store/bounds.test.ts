/** Every table has a bound, and what users grow through REST stays within it. */
import { sql } from "kysely";
import { afterEach, beforeEach, expect, it } from "vitest";
import { storeLookups } from "../control/token-check.ts";
import { type Rest, startRest } from "../http/testing/test-rest.ts";
import { BOUNDS, ENDED_TOKENS_PER_OWNER } from "./bounds.ts";
import { applyRetention, RETENTION_EVERY_MS } from "./retention.ts";

const OF_MIGRATIONS = ["migrations", "additions"];
const UNBOUNDED = { requestsPerMinute: 1e9, anonymousRequestsPerMinute: 1e9, requestsAtOnce: 100 };

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest({
    quotas: { ...UNBOUNDED, agentsPerUser: 100, metadataBytesPerUser: 1e6 },
  });
  token = await rest.addUser("ada");
});
afterEach(() => rest.close());

const count = async (table: keyof typeof BOUNDS): Promise<number> => {
  const { rows } = await rest.context.store.db
    .selectFrom(table)
    .select((of) => of.fn.countAll<number>().as("rows"))
    .executeTakeFirstOrThrow();
  return rows;
};
const post = (path: string, body?: object) => rest.call("POST", path, { token, body });

it("every table of the schema has a bound", async () => {
  const tables = await rest.context.store.db.introspection.getTables();
  const names = tables.map(({ name }) => name).filter((name) => !OF_MIGRATIONS.includes(name));
  expect(Object.keys(BOUNDS).sort()).toEqual(names.sort());
});

it("a loop of rotations displaces its own tokens, not the one that a device holds", async () => {
  const { api_token: onTheDevice } = (await post("/agents", { name: "a", agent_id: "a" })).json();
  rest.clock.nowMs += 60_000;
  for (let round = 0; round < ENDED_TOKENS_PER_OWNER + 20; round += 1) {
    rest.clock.nowMs += 1000;
    expect((await post("/agents/a/rotate-token")).statusCode).toBe(200);
  }
  // Two of "ada", of the admin, and of the agent are valid.
  expect(await count("tokens")).toBe(ENDED_TOKENS_PER_OWNER + 3);
  const { findCredential } = await import("../control/credentials.ts");
  const { db } = rest.context.store;
  expect(await findCredential(db, onTheDevice, rest.clock.nowMs)).toEqual({ state: "ended" });
});

it("no session token of a deleted hash becomes valid again", async () => {
  const { api_token: apiToken } = (await post("/agents", { name: "a", agent_id: "a" })).json();
  const { store } = rest.context;
  const asked = { clientType: "agent", agentId: "a", address: "192.0.2.1" } as const;
  const login = await storeLookups(store).authenticate({
    ...asked,
    apiToken,
    nowMs: rest.clock.nowMs,
  });
  const sessionToken = login.ok ? login.sessionToken : "";
  for (let round = 0; round <= ENDED_TOKENS_PER_OWNER + 1; round += 1) {
    rest.clock.nowMs += round + 1; // each is valid for longer than the first
    await post("/agents/a/rotate-token");
  }
  const nowMs = rest.clock.nowMs;
  expect(await storeLookups(store).authenticate({ ...asked, sessionToken, nowMs })).toMatchObject({
    ok: false,
    counted: false,
  });
});

/** Of the store's file, without its log. */
const pagesOfFile = async (): Promise<number> => {
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(
    rest.context.store.db,
  );
  return rows[0]?.page_count ?? 0;
};

it("what a user adds in a month stays within the bounds, and the file stops growing", async () => {
  const limits = { tokens: 40, sessions: 30, notices: 50, audit: 60 };
  const pages: number[] = [];
  const bounds = BOUNDS as { [table: string]: { perOwner: number | null } };
  const before = Object.entries(limits).map(([table]) => [table, bounds[table]?.perOwner] as const);
  for (const [table, perOwner] of Object.entries(limits)) {
    (bounds[table] as { perOwner: number }).perOwner = perOwner;
  }
  try {
    for (let day = 0; day < 30; day += 1) {
      for (let turn = 0; turn < 12; turn += 1) {
        rest.clock.nowMs += RETENTION_EVERY_MS;
        const headers = { "idempotency-key": `${day}-${turn}` };
        const body = { name: "a".repeat(100), metadata: { text: "x".repeat(4000) } };
        const made = await rest.call("POST", "/agents", { token, body, headers });
        const agent = made.json().agent_id;
        // Many at once: the answers of failed ones are kept, too.
        for (let n = 0; n < 3; n += 1) {
          const again = { "idempotency-key": `${day}-${turn}-${n}` };
          await rest.call("POST", `/agents/${agent}/rotate-token`, { token, headers: again });
        }
        await post("/auth/session");
        token = (await post("/auth/token/rotate")).json().api_token;
        await rest.call("DELETE", `/agents/${agent}`, { token });
      }
      rest.clock.nowMs += 86_400_000 - 12 * RETENTION_EVERY_MS;
      await applyRetention(rest.context.store.db, rest.clock.nowMs);
      for (const [table, most] of Object.entries(limits)) {
        const rows = await count(table as keyof typeof BOUNDS);
        // What is still valid, and the newest notice, come on top.
        expect({ table, within: rows <= most + 4, rows }).toMatchObject({ table, within: true });
      }
      pages.push(await pagesOfFile());
    }
  } finally {
    for (const [table, perOwner] of before) {
      (bounds[table] as { perOwner: number }).perOwner = perOwner as number;
    }
  }
  // Of each day; free pages of the first week are used again by the later ones.
  expect(Math.max(...pages.slice(10))).toBeLessThanOrEqual(1.1 * Math.max(...pages.slice(0, 10)));
});
