/** A store and a master key that commit 03d9d31 made: opened, migrated, and every token good. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import type { Kysely } from "kysely";
import { afterEach, expect, it } from "vitest";
import type { AuthRequest } from "../core/ports.ts";
import { appliedTo } from "../store/migrate.ts";
import { openData } from "./data-dir.ts";
import { storeLookups } from "./token-check.ts";

const fixture = (name: string) =>
  readFileSync(new URL(`../../fixtures/03d9d31/${name}`, import.meta.url));
const made = JSON.parse(fixture("fixture.json").toString()) as {
  readonly [field in
    | "madeAt"
    | "masterKey"
    | "agentId"
    | "agentToken"
    | "accountToken"
    | "retiredToken"
    | "sessionToken"]: string;
};

const data = mkdtempSync(join(tmpdir(), "blindrelay-before-"));
afterEach(() => rmSync(data, { recursive: true }));

it("opens a store of an earlier version and accepts its tokens", async () => {
  mkdirSync(join(data, "store"), { mode: 0o700 });
  writeFileSync(join(data, "store", "relay.sqlite"), gunzipSync(fixture("store.sqlite.gz")));
  const { store } = await openData({ data, masterKey: made.masterKey });
  const { authenticate } = storeLookups(store);
  const nowMs = Date.parse(made.madeAt);
  const logIn = async (request: Pick<AuthRequest, "clientType"> & Partial<AuthRequest>) => {
    const result = await authenticate({ ...request, address: "192.0.2.1", nowMs });
    return result.ok ? "ok" : [result.code, result.counted];
  };
  const { agentId, accountToken, sessionToken } = made;
  const results = {
    client: await logIn({ clientType: "client", apiToken: accountToken }),
    session: await logIn({ clientType: "client", sessionToken }),
    agent: await logIn({ clientType: "agent", agentId, apiToken: made.agentToken }),
    retired: await logIn({ clientType: "agent", agentId: "valve-2", apiToken: made.retiredToken }),
  };
  expect(results).toEqual({
    client: "ok",
    session: "ok",
    agent: "ok",
    retired: ["INVALID_TOKEN", false],
  });
  const { missing } = await appliedTo(store.db as unknown as Kysely<unknown>);
  expect(missing).toEqual([]);
  await store.close();
});
