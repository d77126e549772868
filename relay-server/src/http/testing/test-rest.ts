/** For tests: the REST side over its own store, with a clock set by hand and no sockets. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LightMyRequestResponse } from "fastify";
import { generateSync } from "otplib";
import { controlContext } from "../../control/context.ts";
import { initStore, openData } from "../../control/data-dir.ts";
import { issuePersistent } from "../../control/issue.ts";
import { hashPassword } from "../../control/passwords.ts";
import type { Quotas } from "../../control/quotas.ts";
import { Hub } from "../../core/hub.ts";
import { Lockout } from "../../core/limits/lockout.ts";
import type { HubPort } from "../../core/ports.ts";
import { createLog } from "../../log.ts";
import { releaseKeys } from "../../releases/keys.ts";
import { addUser } from "../../store/users.ts";
import { buildApp } from "../app.ts";
import { addressReader } from "../base/client-address.ts";
import type { App, HttpContext } from "../base/context.ts";

export const PASSWORD = "correct horse";

export interface Rest {
  readonly app: App;
  readonly context: HttpContext;
  readonly dataDir: string;
  readonly clock: { nowMs: number };
  /** What the control plane requested from the hub, as `["endAgent", "pump-7"]`. */
  readonly ended: [string, string][];
  readonly online: Set<string>;
  /** The admin's TOTP secret, if `totp` was set. */
  readonly totpSecret: string | null;
  call(method: string, path: string, options?: CallOptions): Promise<LightMyRequestResponse>;
  /** Logs the admin in; returns the JSON response. */
  login(more?: object): Promise<{ access_token: string; user: { id: string; api_token: string } }>;
  /** The code that the admin's authenticator currently shows. */
  code(secret?: string): string;
  /** Adds another user and returns its account token. */
  addUser(username: string): Promise<string>;
  close(): Promise<void>;
}

interface CallOptions {
  token?: string;
  body?: unknown;
  headers?: Record<string, string>;
  address?: string;
}

/** Nobody is ever connected. */
const NO_PORT: HubPort = {
  authenticate: () => undefined,
  findOwner: () => undefined,
  findLabels: () => undefined,
  nextTurn: () => undefined,
  saveRequestsUsed: () => undefined,
  agentSeen: () => undefined,
};

export const startRest = async (
  options: {
    totp?: boolean;
    releaseKeys?: readonly string[];
    quotas?: Quotas;
    corsOrigins?: readonly string[];
  } = {},
): Promise<Rest> => {
  const dataDir = mkdtempSync(join(tmpdir(), "blindrelay-rest-"));
  const { totpSecret } = await initStore({
    data: dataDir,
    username: "admin",
    password: PASSWORD,
    totp: options.totp ?? false,
  });
  const data = await openData({ data: dataDir });
  const clock = { nowMs: Date.now() };
  const ended: [string, string][] = [];
  const online = new Set<string>();
  const context: HttpContext = {
    ...controlContext({
      ...data,
      lockout: new Lockout(),
      links: {
        isOnline: (agentId) => online.has(agentId),
        act: (notices) => {
          for (const { kind, subject } of notices) {
            if (kind !== "agent_labels") ended.push([kind, subject]); // ends nothing
          }
        },
      },
      nowMs: () => clock.nowMs,
      steadyMs: () => clock.nowMs,
      ...(options.quotas === undefined ? {} : { quotas: options.quotas }),
    }),
    addressOf: addressReader([], () => undefined),
    publicUrl: null,
    corsOrigins: options.corsOrigins ?? [],
    version: "test",
    releaseKeys: releaseKeys(options.releaseKeys ?? []),
    maxReleaseBytes: 1_000_000,
    outages: createLog("silent"),
    figures: () => ({
      hub: new Hub(NO_PORT, {}, clock.nowMs).stats(),
      others: [],
      startedAtMs: clock.nowMs - 12_345,
      eventLoopDelay: { meanMs: 0.5, p99Ms: 2, maxMs: 9 },
    }),
    writeLinks: () => undefined,
    settle: async () => undefined,
    isReady: async () => true,
  };
  const app = buildApp(context, createLog("silent"));
  await app.ready();

  const call: Rest["call"] = (method, path, { token, body, headers, address } = {}) =>
    app.inject({
      method: method as "GET",
      url: /^\/(a|releases)/.test(path) ? `/api/v1${path}` : path,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...headers,
      },
      ...(body === undefined ? {} : { payload: body as object }),
      remoteAddress: address ?? "192.0.2.1",
    });
  return {
    app,
    context,
    dataDir,
    clock,
    ended,
    online,
    totpSecret,
    call,
    login: async (more = {}) => {
      const body = { username: "admin", password: PASSWORD, ...more };
      return (await call("POST", "/auth/login", { body })).json();
    },
    code: (secret = totpSecret ?? "") =>
      generateSync({ secret, epoch: Math.floor(clock.nowMs / 1000) }),
    addUser: async (username) => {
      const id = `id-of-${username}`;
      await addUser(data.store.db, {
        id,
        username,
        role: "user",
        password_hash: await hashPassword(PASSWORD),
        totp_secret: null,
        totp_confirmed: 0,
        created_at: clock.nowMs,
      });
      return issuePersistent(
        data.store.db,
        data.secrets,
        { userId: id, agentId: null },
        clock.nowMs,
      );
    },
    close: async () => {
      await app.close();
      await data.store.close();
      rmSync(dataDir, { recursive: true });
    },
  };
};
