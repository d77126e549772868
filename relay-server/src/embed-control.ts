/**
 * `@blindrelay/relay-server/control`: the relay's control plane and REST API over a store in
 * memory, for callers that run a hub of `./core` with their own clock. On Node only; exempt from
 * semantic versioning.
 */
import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import pkg from "../package.json" with { type: "json" };
import { actOn } from "./control/act-on-notice.ts";
import { controlContext, type Links } from "./control/context.ts";
import { issuePersistent } from "./control/issue.ts";
import { DEFAULT_QUOTAS } from "./control/quotas.ts";
import { MASTER_KEY_BYTES, Secrets } from "./control/secrets.ts";
import { storeLookups } from "./control/token-check.ts";
import { type StoreWriteBehind, storeWriteBehind } from "./control/write-behind.ts";
import type { Hub } from "./core/hub.ts";
import { Lockout } from "./core/limits/lockout.ts";
import type { HubLookups } from "./core/ports.ts";
import { buildApp } from "./http/app.ts";
import { addressReader } from "./http/base/client-address.ts";
import { closeApp } from "./http/close.ts";
import { createLog } from "./log.ts";
import { releaseKeys } from "./releases/keys.ts";
import { IN_MEMORY, openStore } from "./store/open.ts";
import { addUser } from "./store/users.ts";

export type { StoreWriteBehind } from "./control/write-behind.ts";

/** Of the requests that a control plane answers. */
export type Method = "GET" | "POST" | "PATCH" | "DELETE";

export interface ControlParts {
  /** The hub's clocks. */
  readonly wallMs: () => number;
  readonly steadyMs: () => number;
  /** The hub that runs now, if any. */
  readonly hub: () => Hub | null;
}

export interface Control {
  readonly lookups: HubLookups;
  /** Of a relay that starts: what an earlier one had not flushed is lost. */
  startWriting(): StoreWriteBehind;
  /** Makes an account; resolves with its token. */
  addAccount(id: string): Promise<string>;
  /** A REST request below `/api/v1`, with a token; resolves with the status and the JSON body. */
  request(
    method: Method,
    path: string,
    token: string,
    body?: object,
  ): Promise<{ readonly status: number; readonly body: unknown }>;
  /** All rows of the store, as JSON. */
  rows(): Promise<string[]>;
  close(): Promise<void>;
}

/** Nobody publishes here. */
const MAX_RELEASE_BYTES = 1;
/** The caller's fleets are as large as it likes, and by its clock are made at once. */
const ANY_NUMBER = 1_000_000;

/** What `parts` tell may change between two requests, never during one. */
export const openControl = async (parts: ControlParts): Promise<Control> => {
  const { wallMs: nowMs, steadyMs, hub } = parts;
  const store = await openStore({ engine: "sqlite", path: IN_MEMORY }, true);
  const secrets = new Secrets(randomBytes(MASTER_KEY_BYTES));
  const log = createLog("silent");
  let writing = storeWriteBehind(store);
  const act: Links["act"] = (notices) => {
    const running = hub();
    if (running === null) return;
    for (const notice of notices) actOn(notice, running, context, steadyMs());
  };
  const context = controlContext({
    store,
    secrets,
    totpRequired: false,
    lockout: new Lockout(),
    links: {
      isOnline: (agentId, _node, userId) => hub()?.isOnlineAnywhere(userId, agentId) ?? false,
      act,
    },
    nowMs,
    steadyMs,
    quotas: { ...DEFAULT_QUOTAS, requestsPerMinute: ANY_NUMBER, agentsPerUser: ANY_NUMBER },
  });
  const app = buildApp(
    {
      ...context,
      addressOf: addressReader([], () => undefined),
      publicUrl: null,
      corsOrigins: [],
      version: pkg.version,
      releaseKeys: releaseKeys([]),
      maxReleaseBytes: MAX_RELEASE_BYTES,
      outages: log,
      figures: () => {
        throw new Error("there is no process to measure");
      },
      writeLinks: () => undefined,
      settle: () => writing.flush(),
      isReady: async () => true,
    },
    log,
  );
  await app.ready();
  return {
    lookups: storeLookups(store),
    startWriting: () => {
      writing = storeWriteBehind(store);
      return writing;
    },
    addAccount: (id) =>
      store.write(async (tx) => {
        const made = { id, username: id, role: "user", created_at: nowMs() } as const;
        await addUser(tx, { ...made, password_hash: "", totp_secret: null, totp_confirmed: 0 });
        return issuePersistent(tx, secrets, { userId: id, agentId: null }, nowMs());
      }),
    request: async (method, path, token, body) => {
      const { statusCode, payload } = await app.inject({
        method,
        url: `/api/v1${path}`,
        headers: { authorization: `Bearer ${token}` },
        ...(body === undefined ? {} : { payload: body }),
      });
      return { status: statusCode, body: payload === "" ? null : JSON.parse(payload) };
    },
    rows: async () => {
      const tables = await store.db.introspection.getTables();
      const rows: string[] = [];
      for (const { name } of tables) {
        const found = await sql`select * from ${sql.table(name)}`.execute(store.db);
        for (const row of found.rows) rows.push(JSON.stringify(row));
      }
      return rows;
    },
    close: async () => {
      await closeApp(app);
      await store.close();
    },
  };
};
