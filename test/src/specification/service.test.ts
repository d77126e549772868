/** What the service is, its secrets, and its records: the specification's first four chapters. */
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWebSocket } from "./raw-websocket.ts";
import { type Account, PASSWORD, type RegisteredAgent, Relay } from "./relay.ts";

let relay: Relay;
let account: Account;
let device: RegisteredAgent;
beforeAll(async () => {
  relay = await new Relay().start();
  account = await relay.admin();
  device = await relay.device(account);
});
afterAll(() => relay.close());

const ISO_UTC = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

/** Everything that the relay wrote to its disk. */
const stored = (): Buffer => {
  const folder = join(relay.data, "store");
  return Buffer.concat(readdirSync(folder).map((name) => readFileSync(join(folder, name))));
};

test("service.rest_api", async () => {
  const token = account.accountToken;
  for (const path of ["/account", "/agents", "/releases", "/admin/users"]) {
    expect((await relay.api("GET", path, { token })).status, path).toBe(200);
    expect((await relay.root("GET", path, { token })).status, path).toBe(404);
  }
});

const hasOpenssl = spawnSync("openssl", ["version"]).status === 0;

test.skipIf(!hasOpenssl)("service.wss", async () => {
  const secure = new Relay();
  const [tlsCert, tlsKey] = [join(secure.data, "relay.crt"), join(secure.data, "relay.key")];
  const made = spawnSync("openssl", [
    ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"],
    ...["-subj", "/CN=relay", "-addext", "subjectAltName=IP:127.0.0.1"],
    ...["-keyout", tlsKey, "-out", tlsCert],
  ]);
  expect(made.status, String(made.stderr)).toBe(0);
  await secure.start({ settings: { tlsCert, tlsKey } });
  try {
    const base = new URL(secure.url);
    expect(base.protocol).toBe("https:");
    const link = await openWebSocket(`wss://${base.host}/wss`, { certificate: tlsCert });
    link.send({ type: "auth", client_type: "client", api_token: account.accountToken });
    expect(await link.next()).toMatchObject({ type: "auth_response" });
    link.destroy();
  } finally {
    await secure.close();
  }
});

test("surface.rest", async () => {
  const { accountToken: token } = account;
  expect((await relay.root("GET", "/api/v1/account", { token })).status).toBe(200);
  expect((await relay.root("GET", "/api/v1/agents", { token })).status).toBe(200);
  expect((await relay.root("GET", "/api/v1/releases", { token })).status).toBe(200);
  expect((await relay.root("GET", "/api/v1/admin/stats", { token })).status).toBe(200);
});

test("surface.wss", async () => {
  const client = await relay.client(account);
  const agent = await relay.agent(device);
  const payload = JSON.stringify({ v: "1", sid: "surface", seq: 0, p: "AAAA" });
  client.send({ type: "relay", agent_id: device.agentId, payload });
  expect(await agent.next()).toMatchObject({ type: "relay", payload });
});

test("surface.openapi", async () => {
  const { status, json } = await relay.root("GET", "/api/openapi.json");
  expect(status).toBe(200);
  expect(json.openapi).toMatch(/^3\./);
  expect(Object.keys(json.paths)).toContain("/api/v1/auth/login");
});

test("surface.viewers", async () => {
  for (const path of ["/api/docs", "/api/redoc"]) {
    const { status, headers, text } = await relay.root("GET", path);
    expect(status, path).toBe(200);
    expect(headers["content-type"], path).toMatch(/^text\/html/);
    expect(text, path).toContain("<script");
  }
});

test("secret.apart", async () => {
  const sessionToken = await relay.sessionToken(account.accountToken);
  const all = [account.accountToken, device.relayToken, sessionToken, account.accessToken];
  const prefixes = all.map((token) => token.slice(0, token.indexOf("_") + 1));
  expect(new Set(prefixes).size).toBe(4);
  // Each is valid only in its own place.
  expect((await relay.api("GET", "/account", { token: device.relayToken })).status).toBe(401);
  const asAgent = { client_type: "agent", agent_id: device.agentId };
  const wrong = await relay.auth({ ...asAgent, api_token: account.accountToken });
  expect(wrong.answer.status).toBe("failed");
});

test("secret.account_token", async () => {
  expect(account.accountToken).toMatch(/^acct_/);
  expect((await relay.user()).accountToken).toMatch(/^acct_/);
  expect((await relay.api("GET", "/account", { token: account.accountToken })).status).toBe(200);
});

test("secret.agent_token", async () => {
  const other = await relay.device(account);
  expect(device.relayToken).toMatch(/^agt_/);
  expect(other.relayToken).toMatch(/^agt_/);
  expect(other.relayToken).not.toBe(device.relayToken);
  const fields = { client_type: "firmware", agent_id: other.agentId };
  const { answer } = await relay.auth({ ...fields, api_token: other.relayToken });
  expect(answer.status).toBe("authenticated");
});

test("secret.hashes", async () => {
  const { accessToken, accountToken } = await relay.logIn("ada");
  const sessionToken = await relay.sessionToken(accessToken);
  const bytes = stored();
  const all = [accountToken, accessToken, device.relayToken, sessionToken];
  for (const token of all) {
    const hash = createHash("sha256").update(token);
    const kind = token.split("_")[0] as string;
    expect(bytes.includes(token), kind).toBe(false);
    expect(bytes.includes(hash.copy().digest()) || bytes.includes(hash.digest("hex")), kind).toBe(
      true,
    );
  }
});

test("account.username", async () => {
  const { json, status } = await relay.api("POST", "/auth/login", {
    body: { username: "ada", password: PASSWORD },
  });
  expect(status).toBe(200);
  expect(json.user.username).toBe("ada");
  const body = { username: 7, password: PASSWORD };
  expect((await relay.api("POST", "/auth/login", { body })).status).toBe(422);
  const nobody = { username: "nobody", password: PASSWORD };
  expect((await relay.api("POST", "/auth/login", { body: nobody })).status).toBe(401);
});

test("account.password", async () => {
  const wrong = { username: "ada", password: `${PASSWORD}!` };
  const refused = await relay.api("POST", "/auth/login", { body: wrong });
  expect(refused.status).toBe(401);
  expect(refused.text).not.toContain(PASSWORD);
  expect((await relay.api("GET", "/account", { token: account.accountToken })).text).not.toContain(
    "password",
  );
  expect(stored().includes(PASSWORD)).toBe(false);
});

test("account.totp_code", async () => {
  const strict = await new Relay().start({ totp: true });
  try {
    const body = { username: "ada", password: PASSWORD };
    const logIn = (more: object) =>
      strict.api("POST", "/auth/login", { body: { ...body, ...more } });
    expect((await logIn({})).status).toBe(401);
    const code = strict.totpCode();
    const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, "0");
    expect((await logIn({ totp_code: wrong })).status).toBe(401);
    expect((await logIn({ totp_code: code })).status).toBe(200);
    strict.advance(30);
    expect((await logIn({ totp_code: strict.totpCode() })).status).toBe(200);
  } finally {
    await strict.close();
  }
});

test("account.api_token", async () => {
  const first = await relay.logIn("ada");
  expect(first.accountToken).toMatch(/^acct_[0-9A-Za-z]+$/);
  expect((await relay.logIn("ada")).accountToken).toBe(first.accountToken);
});

test("account.other_fields", async () => {
  const { json } = await relay.api("GET", "/account", { token: account.accountToken });
  expect(json).toEqual({
    id: expect.any(String),
    username: "ada",
    role: "admin",
    totp_enabled: false,
    created_at: expect.stringMatching(ISO_UTC),
  });
});

test("token.access_token", async () => {
  const body = { username: "ada", password: PASSWORD };
  const { json } = await relay.api("POST", "/auth/login", { body });
  expect(json).toMatchObject({ access_token: expect.any(String), expires_in: 3600 });
  const token = json.access_token;
  expect((await relay.api("GET", "/account", { token })).status).toBe(200);
  relay.advance(3599);
  expect((await relay.api("GET", "/account", { token })).status).toBe(200);
  relay.advance(1);
  expect((await relay.api("GET", "/account", { token })).status).toBe(401);
});

test("token.session_token", async () => {
  const token = await relay.sessionToken(account.accountToken);
  expect(token).toMatch(/^sess_/);
  const asClient = { client_type: "client", session_token: token };
  relay.advance(86_399);
  expect((await relay.auth(asClient)).answer).toMatchObject({
    status: "authenticated",
    expires_in: 1,
  });
  relay.advance(1);
  expect((await relay.auth(asClient)).answer).toMatchObject({
    status: "failed",
    error: "Session token expired",
  });
});

test("token.account", async () => {
  const user = await relay.user();
  relay.advance(400 * 86_400);
  expect((await relay.api("GET", "/account", { token: user.accountToken })).status).toBe(200);
  await relay.api("POST", "/auth/token/rotate", { token: user.accountToken });
  expect((await relay.api("GET", "/account", { token: user.accountToken })).status).toBe(401);
});

test("token.agent", async () => {
  const own = await relay.device(account);
  const path = `/agents/${own.agentId}/rotate-token`;
  const { json } = await relay.api("POST", path, { token: account.accountToken });
  const fields = { client_type: "agent", agent_id: own.agentId };
  const old = await relay.auth({ ...fields, api_token: own.relayToken });
  expect(old.answer).toMatchObject({ status: "failed", error: "Invalid token" });
  const renewed = await relay.auth({ ...fields, api_token: json.api_token });
  expect(renewed.answer.status).toBe("authenticated");
});

test("agent.agent_id", async () => {
  const other = await relay.device(account);
  for (const agent_id of [other.agentId, device.agentId.toUpperCase(), "nobody"]) {
    const fields = { client_type: "agent", api_token: device.relayToken, agent_id };
    const { answer } = await relay.auth(fields);
    expect(answer).toMatchObject({ status: "failed", error: "Invalid token" });
  }
  const right = { client_type: "agent", api_token: device.relayToken, agent_id: device.agentId };
  expect((await relay.auth(right)).answer.status).toBe("authenticated");
});

test("agent.other_fields", async () => {
  const token = account.accountToken;
  const labels = { line: "7" };
  const body = { name: "Pump in the cellar", labels, metadata: { site: "cellar" } };
  const { json: made } = await relay.api("POST", "/agents", { token, body });
  const { json } = await relay.api("GET", `/agents/${made.agent_id}`, { token });
  expect(json).toEqual({
    agent_id: made.agent_id,
    name: "Pump in the cellar",
    online: false,
    last_seen: null,
    runtime: null,
    firmware_version: null,
    created_at: expect.stringMatching(ISO_UTC),
    labels,
    metadata: { site: "cellar" },
  });
  expect(made).toEqual({ ...json, api_token: expect.stringMatching(/^agt_/) });
});

test("session.session_token", async () => {
  const issued = await relay.sessionToken(account.accountToken);
  const byRest = await relay.auth({ client_type: "client", session_token: issued });
  expect(byRest.answer.session_token).toBe(issued);
  const byToken = await relay.auth({ client_type: "client", api_token: account.accountToken });
  const { session_token } = byToken.answer;
  expect(session_token).toMatch(/^sess_/);
  expect(session_token).not.toBe(issued);
  const again = await relay.auth({ client_type: "client", session_token });
  expect(again.answer.status).toBe("authenticated");
});

test("session.expires_at", async () => {
  const { json } = await relay.api("POST", "/auth/session", { token: account.accountToken });
  expect(json.expires_at).toMatch(ISO_UTC);
  expect(Date.parse(json.expires_at)).toBe(relay.nowMs + 86_400_000);
});

test("session.expires_in", async () => {
  const { json } = await relay.api("POST", "/auth/session", { token: account.accountToken });
  expect(json.expires_in).toBe(86_400);
  const { answer } = await relay.auth({ client_type: "client", api_token: account.accountToken });
  expect(answer.expires_in).toBe(86_400);
});

test("session.max_requests", async () => {
  const { json } = await relay.api("POST", "/auth/session", { token: account.accountToken });
  expect(json.max_requests).toBe(10_000);
  const { answer } = await relay.auth({ client_type: "client", api_token: account.accountToken });
  expect(answer.max_requests).toBe(10_000);
});

test("record.release", async () => {
  const token = account.accountToken;
  const body = { runtime: "node", channel: "stable", version: "1.4.0", notes: "Calmer" };
  const { status, json } = await relay.api("POST", "/releases", { token, body });
  expect(status).toBe(201);
  expect(json).toEqual({
    ...body,
    id: expect.any(String),
    status: "draft",
    size: null,
    sha256: null,
    signature: null,
    key_id: null,
    rollout: { percent: 100, paused: false, offered: 0, confirmed: 0, running: 0, left: 0 },
    created_at: expect.stringMatching(ISO_UTC),
    published_at: null,
  });
});

test("record.admin_stats", async () => {
  const { json } = await relay.api("GET", "/admin/stats", { token: account.accountToken });
  expect(json).toMatchObject({
    uptime_s: expect.any(Number),
    versions: { relay: expect.any(String) },
    connections: { client: expect.any(Number), agent: expect.any(Number) },
    agents: { total: expect.any(Number), online: expect.any(Number) },
    messages: { forwarded: expect.any(Number), dropped: expect.any(Object) },
    auth_failures: expect.any(Number),
    lockouts: expect.any(Number),
    queue_bytes: expect.any(Number),
    event_loop_delay: { p99_ms: expect.any(Number) },
  });
});

test("version.path", async () => {
  const { json } = await relay.root("GET", "/api/openapi.json");
  const versioned = Object.keys(json.paths).filter((path) => /^\/api\/v\d+\//.test(path));
  expect(versioned.length).toBeGreaterThan(10);
  expect(versioned.filter((path) => !path.startsWith("/api/v1/"))).toEqual([]);
  const body = { username: "ada", password: PASSWORD };
  expect((await relay.root("POST", "/api/auth/login", { body })).status).toBe(404);
  expect((await relay.root("POST", "/api/v2/auth/login", { body })).status).toBe(404);
});

test("version.packet", async () => {
  // A user's own: agents of other tests may still go offline, and their users' clients hear of it.
  const user = await relay.user();
  const own = await relay.device(user);
  const agent = await relay.agent(own);
  const client = await relay.client(user);
  // The relay does not interpret it: a later version is forwarded too.
  for (const v of ["1", "2", "2027-x"]) {
    const payload = JSON.stringify({ v, sid: `version-${v}`, seq: 0, p: "AAAA" });
    client.send({ type: "relay", agent_id: own.agentId, payload });
    expect(JSON.parse((await agent.next()).payload).v).toBe(v);
  }
  client.send({ v: 1, sid: "version-1", seq: 1, p: "AAAA" });
  expect(await client.next()).toMatchObject({ type: "error", code: "BAD_MESSAGE" });
});

test("version.policy", async () => {
  const name = `unknown-${randomBytes(4).toString("hex")}`;
  const body = { username: "ada", password: PASSWORD, [name]: { any: "thing" } };
  expect((await relay.api("POST", "/auth/login", { body })).status).toBe(200);
  const link = await relay.client(await relay.user(), { [name]: [1, 2] });
  link.send({ type: "pong", [name]: true });
  link.send({ type: name });
  expect(await link.next()).toMatchObject({ type: "error", code: "UNKNOWN_TYPE" });
  expect(await link.soFar()).toEqual([]);
});
