/** The REST endpoints, what they accept and answer, and who may call them. */
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { openWebSocket } from "./raw-websocket.ts";
import { type Account, PASSWORD, type RegisteredAgent, Relay } from "./relay.ts";

const { publicKey, privateKey } = generateKeyPairSync("ed25519");

let relay: Relay;
let account: Account;
let device: RegisteredAgent;
beforeAll(async () => {
  const key = publicKey.export({ format: "jwk" }).x as string;
  relay = await new Relay().start({ settings: { releaseKeys: [key] } });
  account = await relay.admin();
  device = await relay.device(account);
});
afterAll(() => relay.close());

const isAgentGood = async (api_token: string, { agentId }: RegisteredAgent): Promise<boolean> => {
  const { link, answer } = await relay.auth({ client_type: "agent", agent_id: agentId, api_token });
  link.destroy();
  return answer.status === "authenticated";
};

const isBearerGood = async (token: string): Promise<boolean> =>
  (await relay.api("GET", "/account", { token })).status === 200;

const isSessionGood = async (session_token: string): Promise<boolean> => {
  const { link, answer } = await relay.auth({ client_type: "client", session_token });
  link.destroy();
  return answer.status === "authenticated";
};

/** Creates, uploads and publishes a release as an admin does. */
const publish = async (channel: string, version: string): Promise<void> => {
  const token = account.accountToken;
  const bytes = `firmware ${version}`;
  const draft = { runtime: "node", channel, version };
  const { json } = await relay.api("POST", "/releases", { token, body: draft });
  const sha256 = createHash("sha256").update(bytes).digest("hex");
  const signed = `blindrelay-release|node|${channel}|${version}|${bytes.length}|${sha256}`;
  const signature = sign(null, Buffer.from(signed), privateKey).toString("base64url");
  const headers = { "content-type": "application/octet-stream", "release-signature": signature };
  const path = `/releases/${json.id}`;
  const uploaded = await relay.api("PUT", `${path}/artifact`, { token, body: bytes, headers });
  expect(uploaded.status, uploaded.text).toBe(200);
  const published = await relay.api("PATCH", path, { token, body: { status: "published" } });
  expect(published.status, published.text).toBe(200);
};

test("rest.base", async () => {
  const { status, headers } = await relay.root("GET", "/api/v1/auth/config");
  expect(status).toBe(200);
  expect(headers["content-type"]).toMatch(/^application\/json/);
  expect((await relay.root("GET", "/auth/config")).status).toBe(404);
  const body = { username: "ada", password: PASSWORD };
  const form = { "content-type": "application/x-www-form-urlencoded" };
  expect((await relay.api("POST", "/auth/login", { body, headers: form })).status).toBe(415);
});

test("rest.auth_config", async () => {
  const { status, json } = await relay.api("GET", "/auth/config");
  expect(status).toBe(200);
  expect(json).toEqual({
    totp: "optional",
    registration: false,
    session: { ttl: 86_400, max_requests: 10_000 },
    lockout: { failures: 5, window: 300, duration: 600 },
    packet_versions: ["1", "2", "3", "4"],
    version: expect.any(String),
  });
});

test("rest.auth_login", async () => {
  const body = { username: "ada", password: PASSWORD, totp_code: "000000" };
  const { status, json } = await relay.api("POST", "/auth/login", { body });
  expect(status).toBe(200);
  expect(json).toEqual({
    access_token: expect.stringMatching(/^login_/),
    token_type: "Bearer",
    expires_in: 3600,
    user: {
      id: expect.any(String),
      username: "ada",
      role: "admin",
      api_token: expect.stringMatching(/^acct_/),
      totp_enabled: false,
      created_at: expect.any(String),
    },
  });
});

test("rest.auth_session", async () => {
  for (const token of [account.accountToken, account.accessToken]) {
    const { status, json } = await relay.api("POST", "/auth/session", { token });
    expect(status).toBe(200);
    expect(json).toEqual({
      session_token: expect.stringMatching(/^sess_/),
      expires_at: new Date(relay.nowMs + 86_400_000).toISOString(),
      expires_in: 86_400,
      max_requests: 10_000,
    });
    expect(await isSessionGood(json.session_token)).toBe(true);
  }
  expect((await relay.api("POST", "/auth/session")).status).toBe(401);
});

test("rest.auth_token_rotate", async () => {
  const user = await relay.user();
  const link = await relay.client(user);
  const { status, json } = await relay.api("POST", "/auth/token/rotate", {
    token: user.accountToken,
  });
  expect(status).toBe(200);
  expect(json).toEqual({
    api_token: expect.stringMatching(/^acct_/),
    rotated_at: new Date(relay.nowMs).toISOString(),
  });
  expect(json.api_token).not.toBe(user.accountToken);
  expect(await isBearerGood(user.accountToken)).toBe(false);
  expect(await isBearerGood(json.api_token)).toBe(true);
  expect(await link.next()).toMatchObject({ type: "error", code: "REVOKED" });
  expect(await link.next()).toEqual({ closed: 1008 });
});

test("rest.agents_rotate_token", async () => {
  const [one, other] = [await relay.device(account), await relay.device(account)];
  const session = await relay.sessionToken(account.accountToken);
  const path = `/agents/${one.agentId}/rotate-token`;
  const { status, json } = await relay.api("POST", path, { token: account.accountToken });
  expect(status).toBe(200);
  expect(json).toEqual({
    agent_id: one.agentId,
    api_token: expect.stringMatching(/^agt_/),
    rotated_at: new Date(relay.nowMs).toISOString(),
  });
  expect(await isAgentGood(one.relayToken, one)).toBe(false);
  expect(await isAgentGood(json.api_token, one)).toBe(true);
  expect(await isAgentGood(other.relayToken, other)).toBe(true);
  expect(await isBearerGood(account.accountToken)).toBe(true);
  expect(await isSessionGood(session)).toBe(true);
});

test("rest.agents_export", async () => {
  const path = `/agents/${device.agentId}/export`;
  const { status, headers, json } = await relay.api("GET", path, { token: account.accountToken });
  expect(status).toBe(200);
  expect(headers["cache-control"]).toBe("no-store");
  expect(json).toEqual({
    agent_id: device.agentId,
    api_token: device.relayToken,
    relay_url: `${relay.url.replace("http", "ws")}/wss`,
    created_at: expect.any(String),
  });
});

test("rest.releases_check", async () => {
  await publish("stable", "1.4.0");
  await publish("stable", "1.5.0");
  await publish("beta", "2.0.0-rc.1");
  const check = async (query: string, token = account.accountToken) =>
    (await relay.api("GET", `/releases/check?${query}`, { token })).json;
  expect(await check("channel=stable&version=1.0.0")).toEqual({
    update_available: true,
    channel: "stable",
    current: "1.0.0",
    latest: {
      version: "1.5.0",
      runtime: "node",
      url: expect.stringMatching(/^http/),
      sha256: createHash("sha256").update("firmware 1.5.0").digest("hex"),
      size: 14,
      signature: expect.any(String),
      key_id: expect.stringMatching(/^[0-9a-f]{16}$/),
      notes: "",
      published_at: expect.any(String),
    },
  });
  const beta = await check("channel=beta&version=1.0.0", account.accessToken);
  expect(beta.latest.version).toBe("2.0.0-rc.1");
  expect((await relay.api("GET", "/releases/check?channel=stable&version=1.0.0")).status).toBe(401);
  const none = await check("channel=stable&version=1.5.0", device.relayToken);
  expect(none).toEqual({
    update_available: false,
    channel: "stable",
    current: "1.5.0",
    latest: null,
  });
});

test("rest.admin_stats", async () => {
  const path = "/admin/stats";
  for (const token of [account.accountToken, account.accessToken]) {
    const { status, json } = await relay.api("GET", path, { token });
    expect(status).toBe(200);
    expect(json.agents.total).toBeGreaterThan(0);
  }
  expect((await relay.api("GET", path)).status).toBe(401);
});

test("rest.health", async () => {
  for (const path of ["/health", "/health/live", "/health/ready"]) {
    const { status, json } = await relay.root("GET", path);
    expect([path, status, json]).toEqual([path, 200, { status: "ok" }]);
  }
  expect((await relay.root("GET", "/metrics")).status).toBe(404);
  const metrics = await (await fetch(relay.metricsUrl)).text();
  expect(metrics).toMatch(/^# HELP /);
});

test("rest.openapi", async () => {
  const { json } = await relay.root("GET", "/api/openapi.json");
  const given = {
    "/api/v1/auth/config": "get",
    "/api/v1/auth/login": "post",
    "/api/v1/auth/session": "post",
    "/api/v1/auth/token/rotate": "post",
    "/api/v1/agents/{agent_id}/rotate-token": "post",
    "/api/v1/agents/{agent_id}/export": "get",
    "/api/v1/releases/check": "get",
    "/api/v1/admin/stats": "get",
  };
  for (const [path, method] of Object.entries(given)) {
    expect(json.paths[path]?.[method]?.responses, path).toHaveProperty("200");
  }
});

test("rest.viewers", async () => {
  for (const path of ["/api/docs", "/api/redoc"]) {
    const { status, headers, text } = await relay.root("GET", path);
    expect([path, status]).toEqual([path, 200]);
    expect(headers["content-type"]).toMatch(/^text\/html/);
    const scripts = [...text.matchAll(/<script[^>]* src="([^"]+)"/g)].map(([, src]) => src);
    expect(scripts.length, path).toBeGreaterThan(0);
    for (const src of scripts) {
      const { pathname } = new URL(src as string, `${relay.url}${path}`);
      expect((await relay.root("GET", pathname)).status, pathname).toBe(200);
    }
  }
});

test("rest.wss_426", async () => {
  const { status, headers } = await relay.root("GET", "/wss");
  expect(status).toBe(426);
  expect(headers.upgrade).toBe("websocket");
});

test("rest.others", async () => {
  const token = account.accountToken;
  const user = await relay.user();
  const own = await relay.device(user);
  const calls: [string, string, object | undefined, number][] = [
    ["GET", "/account", undefined, 200],
    ["GET", "/agents", undefined, 200],
    ["POST", "/agents", { name: "lamp" }, 201],
    ["GET", `/agents/${device.agentId}`, undefined, 200],
    ["PATCH", `/agents/${device.agentId}`, { name: "lamp" }, 200],
    ["GET", "/releases", undefined, 200],
    ["GET", "/admin/users", undefined, 200],
    ["GET", `/admin/users/${user.id}`, undefined, 200],
    ["GET", "/admin/audit", undefined, 200],
  ];
  for (const [method, path, body, status] of calls) {
    const answer = await relay.api(method, path, { token, body });
    expect([method, path, answer.status]).toEqual([method, path, status]);
  }
  const gone = await relay.api("DELETE", `/agents/${own.agentId}`, { token: user.accountToken });
  expect(gone.status).toBe(204);
  expect((await relay.api("POST", "/auth/logout", { token: user.accessToken })).status).toBe(204);
});

test("auth.bearer", async () => {
  const authorization = `Bearer ${account.accountToken}`;
  expect((await relay.api("GET", "/agents", { headers: { authorization } })).status).toBe(200);
  for (const wrong of [
    account.accountToken,
    `Basic ${account.accountToken}`,
    `Bearer ${account.accountToken}x`,
  ]) {
    const headers = { authorization: wrong };
    expect((await relay.api("GET", "/agents", { headers })).status).toBe(401);
  }
});

test("auth.login", async () => {
  const strict = await new Relay().start({ totp: true });
  try {
    const body = { username: "ada", password: PASSWORD, totp_code: strict.totpCode() };
    const { status, json } = await strict.api("POST", "/auth/login", { body });
    expect(status).toBe(200);
    for (const token of [json.access_token, json.user.api_token]) {
      expect((await strict.api("GET", "/account", { token })).json.totp_enabled).toBe(true);
    }
    expect((await strict.api("POST", "/auth/login", { body })).status).toBe(401); // once each
  } finally {
    await strict.close();
  }
});

test("auth.session", async () => {
  const credentials = [account.accountToken, account.accessToken];
  const sessions = await Promise.all(credentials.map((token) => relay.sessionToken(token)));
  for (const session of sessions) expect(await isSessionGood(session)).toBe(true);
  // A session is no bearer credential for another one, nor is an agent's token.
  for (const token of [...sessions, device.relayToken]) {
    const { status } = await relay.api("POST", "/auth/session", { token });
    expect([401, 403]).toContain(status);
  }
});

test("auth.agent", async () => {
  const { json: exported } = await relay.api("GET", `/agents/${device.agentId}/export`, {
    token: account.accountToken,
  });
  expect(await isAgentGood(exported.api_token, device)).toBe(true);
  const own = await relay.device(account);
  const { json: rotated } = await relay.api("POST", `/agents/${own.agentId}/rotate-token`, {
    token: account.accountToken,
  });
  expect(await isAgentGood(rotated.api_token, own)).toBe(true);
  expect(await isAgentGood(rotated.api_token, device)).toBe(false);
});

test("auth.rotation", async () => {
  const user = await relay.user();
  const [one, other] = [await relay.device(user), await relay.device(user)];
  const { json } = await relay.api("POST", "/auth/token/rotate", { token: user.accountToken });
  expect(await isBearerGood(user.accountToken)).toBe(false);
  expect(await isAgentGood(one.relayToken, one)).toBe(true);
  await relay.api("POST", `/agents/${one.agentId}/rotate-token`, { token: json.api_token });
  expect(await isAgentGood(one.relayToken, one)).toBe(false);
  expect(await isAgentGood(other.relayToken, other)).toBe(true);
  expect(await isBearerGood(json.api_token)).toBe(true);
});

test("auth.admins", async () => {
  const user = await relay.user();
  for (const path of ["/admin/stats", "/admin/users", "/admin/audit"]) {
    expect((await relay.api("GET", path, { token: account.accountToken })).status).toBe(200);
    const refused = await relay.api("GET", path, { token: user.accountToken });
    expect([path, refused.status, refused.json.code]).toEqual([path, 403, "FORBIDDEN"]);
  }
});

test("event.others", async () => {
  const { json, text } = await relay.root("GET", "/api/openapi.json");
  expect(json).not.toHaveProperty("webhooks");
  expect(text).not.toContain('"callbacks"');
  expect(text).not.toContain("text/event-stream");
});

test("error.upgrade", async () => {
  const { status, json } = await relay.root("GET", "/wss");
  expect(status).toBe(426);
  expect(json).toMatchObject({ status: 426, code: "UPGRADE_REQUIRED" });
  // A request that is not an upgrade to WebSocket is not accepted.
  const headers = { connection: "upgrade", upgrade: "h2c" };
  expect((await relay.root("GET", "/wss", { headers })).status).toBe(426);
  (await openWebSocket(`${relay.url}/wss`)).destroy();
});

test("error.rest", async () => {
  const cases: [string, string, object, number, string][] = [
    ["GET", "/account", {}, 401, "AUTH_REQUIRED"],
    ["GET", "/agents/nobody", { token: account.accountToken }, 404, "NOT_FOUND"],
    ["POST", "/agents", { token: account.accountToken, body: {} }, 422, "VALIDATION_FAILED"],
    ["PUT", "/account", { token: account.accountToken }, 405, "METHOD_NOT_ALLOWED"],
  ];
  for (const [method, path, request, status, code] of cases) {
    const answer = await relay.api(method, path, request);
    expect(answer.headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(answer.json).toMatchObject({
      type: expect.any(String),
      title: expect.any(String),
      status,
      detail: expect.any(String),
      code,
      request_id: expect.any(String),
    });
    expect(answer.status).toBe(status);
  }
});

test("limit.rest_rate", async () => {
  // Anyone with valid credentials continues at an ordinary pace.
  const { accountToken: token } = account;
  const answers = await Promise.all(
    Array.from({ length: 20 }, () => relay.api("GET", "/account", { token })),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
  // Anyone who guesses must wait, even with valid credentials.
  const headers = { "x-forwarded-for": relay.freshAddress() };
  const guess = () => relay.api("GET", "/account", { token: "guess", headers });
  for (let i = 0; i < 4; i++) expect((await guess()).status).toBe(401);
  const fifth = await guess();
  expect([fifth.status, fifth.headers["retry-after"]]).toEqual([401, "600"]);
  relay.advance(1);
  const later = await relay.api("GET", "/account", { token, headers });
  expect([later.status, later.headers["retry-after"]]).toEqual([429, "599"]);
});

test("version.releases", async () => {
  const token = account.accountToken;
  await publish("canary", "3.0.0");
  const check = async (version: string) =>
    (await relay.api("GET", `/releases/check?channel=canary&version=${version}`, { token })).json;
  expect((await check("2.9.9")).latest.version).toBe("3.0.0");
  expect(await check("3.0.0")).toMatchObject({ update_available: false, latest: null });
  expect(await check("3.0.1")).toMatchObject({ update_available: false, latest: null });
  for (const query of ["channel=canary", "version=1.0.0", "channel=canary&version=new"]) {
    expect((await relay.api("GET", `/releases/check?${query}`, { token })).status).toBe(422);
  }
});
