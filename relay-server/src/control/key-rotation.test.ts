/** Rotating the master key: its effect on every secret, and that no crash in between loses any. */
import {
  chmodSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { systemClocks } from "../base/clock.ts";
import { type Rest, startRest } from "../http/testing/test-rest.ts";
import { listActs } from "../store/audit.ts";
import type { Db } from "../store/open.ts";
import { postgres, sqlite } from "../store/testing/engines.ts";
import { findUser } from "../store/users.ts";
import { changePassword, enrollTotp, rotateAccountToken } from "./account.ts";
import { findCredential } from "./credentials.ts";
import { initStore, openData } from "./data-dir.ts";
import { repeatPersistent } from "./issue.ts";
import { rekey } from "./key-rotation.ts";
import { adoptNextKey, holdNextKey, masterKeyPath } from "./master-key.ts";
import { hashToken } from "./secrets.ts";

let rest: Rest;
let userId: string;
let account: string;
let agent: string;
let session: string;
let recoveryCode: string;
let totpSecret: string;

beforeEach(async () => {
  rest = await startRest({ totp: true });
  const { access_token: token, user } = await rest.login({ totp_code: rest.code() });
  ({ id: userId, api_token: account } = user);
  const body = { name: "x", agent_id: "x" };
  const headers = { "idempotency-key": "k" };
  agent = (await rest.call("POST", "/agents", { token, body, headers })).json().api_token;
  session = (await rest.call("POST", "/auth/session", { token: account })).json().session_token;
  rest.clock.nowMs += 30_000;
  const proof = { current_password: "correct horse", totp_code: rest.code() };
  const drawn = await rest.call("POST", "/auth/totp/enroll", { token, body: proof });
  totpSecret = drawn.json().secret;
  const confirm = { totp_code: rest.code(totpSecret) };
  const confirmed = await rest.call("POST", "/auth/totp/confirm", { token, body: confirm });
  [recoveryCode] = confirmed.json().recovery_codes;
});
afterEach(() => rest.close());

const rotate = (graceDays = 0) =>
  rekey({ data: rest.dataDir, graceDays, clocks: systemClocks(() => rest.clock.nowMs) });

const opened = async <T>(look: (data: Awaited<ReturnType<typeof openData>>) => Promise<T>) => {
  const data = await openData({ data: rest.dataDir });
  try {
    return await look(data);
  } finally {
    await data.store.close();
  }
};
const tokensIn = (db: Db) => db.selectFrom("tokens").selectAll().orderBy("hash").execute();
const stateOf = (token: string, atMs = rest.clock.nowMs) =>
  opened(async ({ store }) => (await findCredential(store.db, token, atMs)).state);
const current = (agentId: string | null) =>
  opened(({ store, secrets }) => repeatPersistent(store.db, secrets, { userId, agentId }));

test("every account and agent gets a new token, and the old ones end", async () => {
  rest.clock.nowMs += 1;
  // Of a relay whose user reads it by its group.
  chmodSync(masterKeyPath(rest.dataDir), 0o640);
  const result = await rotate();
  expect(statSync(masterKeyPath(rest.dataDir)).mode & 0o777).toBe(0o640);
  expect(result).toMatchObject({
    accounts: 1,
    agents: 1,
    totpSecrets: 1,
    recoveryCodesEnded: 10,
    oldTokensUntilMs: null,
  });
  for (const token of [account, agent, session]) expect(await stateOf(token)).toBe("ended");
  for (const agentId of [null, "x"]) {
    const token = (await current(agentId)) as string;
    expect([account, agent]).not.toContain(token);
    expect(await stateOf(token)).toBe("live");
  }
  const acts = await opened(({ store }) => listActs(store.db, {}, null, 1));
  expect(acts).toMatchObject([{ action: "relay.rekey", actor: null }]);
});

test("in a grace period old tokens are valid beside the new ones, until it ends or one is rotated", async () => {
  const { oldTokensUntilMs } = await rotate(14);
  expect(oldTokensUntilMs).toBe(rest.clock.nowMs + 14 * 86_400_000);
  for (const token of [account, agent, session, (await current("x")) as string]) {
    expect(await stateOf(token)).toBe("live");
  }
  expect(await stateOf(agent, (oldTokensUntilMs as number) - 1)).toBe("live");
  expect(await stateOf(agent, oldTokensUntilMs as number)).toBe("ended");
  await opened(async (data) => {
    const { rotateAgentToken } = await import("./agents.ts");
    const context = { ...rest.context, ...data };
    await rotateAgentToken(context, { userId, key: null }, "x");
  });
  expect(await stateOf(agent)).toBe("ended");
  expect(await stateOf(account)).toBe("live");
});

test("second factors stay valid; recovery codes and stored answers end", async () => {
  await rotate();
  await opened(async (data) => {
    const user = await data.store.db.selectFrom("users").selectAll().executeTakeFirstOrThrow();
    expect(data.secrets.unwrap(userId, user.totp_secret as string)).toBe(totpSecret);
    expect(() => rest.context.secrets.unwrap(userId, user.totp_secret as string)).toThrow();
    const { logIn } = await import("./account.ts");
    const context = { ...rest.context, ...data };
    expect(await logIn(context, "admin", "correct horse", recoveryCode, "192.0.2.1")).toBeNull();
    rest.clock.nowMs += 30_000;
    const code = rest.code(totpSecret);
    const login = await logIn(context, "admin", "correct horse", code, "192.0.2.1");
    expect(login?.accountToken).toMatch(/^acct_/);
    expect(await data.store.db.selectFrom("idempotency").selectAll().execute()).toEqual([]);
  });
});

test("the key file contains the new key with mode 0600, and the old key is kept in its folder", async () => {
  const path = masterKeyPath(rest.dataDir);
  const before = readFileSync(path);
  const { oldKey } = await rotate();
  expect(readFileSync(path).equals(before)).toBe(false);
  expect(statSync(path).mode & 0o777).toBe(0o600);
  expect(readFileSync(oldKey as string).equals(before)).toBe(true);
  expect(readdirSync(join(rest.dataDir, "key")).filter((name) => name.endsWith(".next"))).toEqual(
    [],
  );
});

test("the old key with the new store, or the other way round, yields no token", async () => {
  const oldRows = await rest.context.store.db.selectFrom("tokens").selectAll().execute();
  await rotate();
  await opened(async ({ store, secrets }) => {
    for (const row of await store.db.selectFrom("tokens").selectAll().execute()) {
      if (row.retired_at !== null) continue;
      const id = row.agent_id ?? row.user_id;
      const guess = rest.context.secrets.persistentToken(row.kind, id, row.nonce);
      expect(hashToken(guess)).not.toBe(row.hash);
    }
    for (const row of oldRows) {
      const guess = secrets.persistentToken(row.kind, row.agent_id ?? row.user_id, row.nonce);
      expect(hashToken(guess)).not.toBe(row.hash);
    }
  });
});

test("a relay with the old key stores nothing more that needs a key", async () => {
  const pending = async () => (await findUser(rest.context.store.db, userId))?.totp_pending;
  await rotate(14);
  const stored = await opened(async ({ store: { db } }) => [await tokensIn(db), await pending()]);
  rest.clock.nowMs += 60_000;
  const post = async (path: string, body?: object, headers = {}) =>
    (await rest.call("POST", path, { token: account, body, headers })).statusCode;
  expect(await post("/agents", { name: "y" })).toBe(503);
  expect(await post("/agents", { name: "y" }, { "idempotency-key": "k2" })).toBe(503);
  expect(await post("/agents/x/rotate-token")).toBe(503);
  const user = await findUser(rest.context.store.db, userId);
  if (user === undefined) throw new Error("the user is gone");
  const asking = { holder: "account", hash: hashToken(account), userId } as const;
  await expect(rotateAccountToken(rest.context, asking)).rejects.toThrow("was rotated");
  await expect(enrollTotp(rest.context, user)).rejects.toThrow("was rotated");
  await expect(changePassword(rest.context, user, "another horse", "-")).rejects.toThrow("rotated");
  const after = await opened(async ({ store: { db } }) => [await tokensIn(db), await pending()]);
  expect(after).toEqual(stored);
});

/** As it was between commit and rename: the old key in place, the store's beside it. */
const undoAdoption = (path: string, oldKey: string | null) => {
  renameSync(path, `${path}.next`);
  renameSync(oldKey as string, path);
};

const engines = [sqlite(), postgres()];
test.each(engines.filter(({ skipped }) => !skipped))(
  "one that runs on the data folder keeps others off the store's only key, on $name",
  async (engine) => {
    const location = await engine.prepare();
    onTestFinished(engine.remove);
    const store = location.engine === "postgres" ? location.url : "sqlite";
    const data = join(rest.dataDir, "shared");
    await initStore({ data, store, username: "ada", password: "correct horse", totp: false });
    const options = { data, store, graceDays: 0 };
    const next = `${masterKeyPath(data)}.next`;
    undoAdoption(masterKeyPath(data), (await rekey(options)).oldKey);
    const only = readFileSync(next);
    const release = holdNextKey(data);
    await expect(rekey(options)).rejects.toThrow("another rotation runs");
    expect(readFileSync(next)).toEqual(only);
    release?.();
    await rekey(options);
    await (await openData({ data, store })).store.close();
  },
);

test("while one that has committed is about to adopt its key, others open the store and leave that to it", async () => {
  const path = masterKeyPath(rest.dataDir);
  undoAdoption(path, (await rotate()).oldKey);
  const only = readFileSync(`${path}.next`);
  const release = holdNextKey(rest.dataDir);
  expect(await current("x")).toMatch(/^agt_/);
  adoptNextKey(rest.dataDir, rest.clock.nowMs + 1);
  release?.();
  expect(readFileSync(path)).toEqual(only);
  expect(await current("x")).toMatch(/^agt_/);
});

test("one whose key cannot be put in place when the store is opened keeps no other off", async () => {
  const path = masterKeyPath(rest.dataDir);
  undoAdoption(path, (await rotate()).oldKey);
  const now = vi.spyOn(Date, "now").mockReturnValue(Number.NaN);
  await expect(current("x")).rejects.toThrow("Invalid time value");
  now.mockRestore();
  const release = holdNextKey(rest.dataDir);
  expect(release).not.toBeNull();
  release?.();
});

test("in a folder without a key nothing is made", async () => {
  const data = join(rest.dataDir, "other");
  await expect(rekey({ data, graceDays: 0 })).rejects.toThrow("no store in");
  expect(existsSync(data)).toBe(false);
});

test("if interrupted after the store's commit, the next start installs the new key", async () => {
  const path = masterKeyPath(rest.dataDir);
  undoAdoption(path, (await rotate()).oldKey);
  expect(await current("x")).toMatch(/^agt_/);
  expect(existsSync(`${path}.next`)).toBe(false);
});

test("if interrupted before the commit nothing has changed, and the next attempt makes another key", async () => {
  const path = masterKeyPath(rest.dataDir);
  for (const torn of [Buffer.alloc(32, 1), Buffer.alloc(5)]) {
    writeFileSync(`${path}.next`, torn);
    expect(await current("x")).toBe(agent);
    expect(await stateOf(agent)).toBe("live");
  }
  await rotate();
  expect(readFileSync(path).equals(Buffer.alloc(32, 1))).toBe(false);
  expect(await current("x")).not.toBe(agent);
});

test("keys passed in variables are changed in variables, and no file is touched", async () => {
  const { data, masterKey } = {
    data: rest.dataDir,
    masterKey: readFileSync(masterKeyPath(rest.dataDir)).toString("hex"),
  };
  const newMasterKey = "ab".repeat(32);
  await expect(rekey({ data, masterKey, graceDays: 0 })).rejects.toThrow("NEW_MASTER_KEY");
  await expect(rekey({ data, newMasterKey, graceDays: 0 })).rejects.toThrow("NEW_MASTER_KEY");
  const same = { data, masterKey, newMasterKey: masterKey, graceDays: 0 };
  await expect(rekey(same)).rejects.toThrow("is the old one");
  const bad = { data, masterKey, newMasterKey: "short", graceDays: 0 };
  await expect(rekey(bad)).rejects.toThrow("64 hexadecimal");
  expect(await stateOf(agent)).toBe("live");
  const result = await rekey({ data, masterKey, newMasterKey, graceDays: 0 });
  expect(result.oldKey).toBeNull();
  await expect(openData({ data, masterKey })).rejects.toThrow("not the one");
  await (await openData({ data, masterKey: newMasterKey })).store.close();
});
