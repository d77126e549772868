/**
 * Section 4 of the contract: who may do what over REST, the format of errors, and what pages and
 * lists guarantee.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { RawAnswer } from "../specification/raw-http.ts";
import { type Account, PASSWORD, type RegisteredAgent, Relay } from "../specification/relay.ts";

let relay: Relay;
let admin: Account;
let user: Account;
let device: RegisteredAgent;
beforeAll(async () => {
  relay = await new Relay().start();
  admin = await relay.admin();
  user = await relay.user();
  device = await relay.device(user);
});
afterAll(() => relay.close());

type Call = [method: string, path: string, body?: object];

const send = ([method, path, body]: Call, token?: string): Promise<RawAnswer> =>
  relay.api(method, path, { token, body });

const agentCalls = (agentId: string): Call[] => [
  ["PATCH", `/agents/${agentId}`, { name: "x" }],
  ["POST", `/agents/${agentId}/rotate-token`],
  ["GET", `/agents/${agentId}/export`],
  ["DELETE", `/agents/${agentId}`],
];

describe("errors", () => {
  test("are problem+json that names the request, and where its shape is wrong", async () => {
    const { status, headers, json } = await send(
      ["POST", "/agents", { name: 7 }],
      user.accountToken,
    );
    expect(status).toBe(422);
    expect(headers["content-type"]).toMatch(/^application\/problem\+json/);
    expect(json).toEqual({
      type: expect.any(String),
      title: expect.any(String),
      status: 422,
      detail: expect.any(String),
      code: "VALIDATION_FAILED",
      request_id: expect.any(String),
      errors: [expect.objectContaining({ path: "/name", message: expect.any(String) })],
    });
    const again = await send(["POST", "/agents", { name: 7 }], user.accountToken);
    expect(again.json.request_id).not.toBe(json.request_id);
  });

  test.each<[string, string | undefined]>([
    ["nothing", undefined],
    ["nonsense", "nonsense"],
    ["the prefix only", "acct_"],
  ])("401 after %s asks for a bearer", async (_, token) => {
    const { status, headers, json } = await send(["GET", "/account"], token);
    expect(status).toBe(401);
    expect(headers["www-authenticate"]).toMatch(/^Bearer/);
    expect(json.status).toBe(401);
  });

  test("another user's resource is 404, like a missing one", async () => {
    for (const agentId of [device.agentId, "never-made"]) {
      const calls: Call[] = [["GET", `/agents/${agentId}`], ...agentCalls(agentId)];
      for (const call of calls) {
        const { status, json } = await send(call, admin.accountToken);
        expect([call, status, json.code]).toEqual([call, 404, "NOT_FOUND"]);
      }
    }
    const { json } = await send(["GET", "/agents"], admin.accountToken);
    expect(json).toEqual({ items: [], next_cursor: null });
  });

  test("a lockout is 401 with Retry-After: 600, then 429 with the remaining time", async () => {
    const headers = { "x-forwarded-for": relay.freshAddress() };
    const guess = (token: string) => relay.api("GET", "/account", { token, headers });
    for (let i = 0; i < 4; i++) {
      expect((await guess("guess")).headers).not.toHaveProperty("retry-after");
    }
    const fifth = await guess("guess");
    expect([fifth.status, fifth.headers["retry-after"]]).toEqual([401, "600"]);
    relay.advance(10);
    const valid = await guess(user.accountToken);
    expect([valid.status, valid.headers["retry-after"]]).toEqual([429, "590"]);
    expect(valid.json.code).toBe("LOCKED_OUT");
  });
});

describe("a client's session token", () => {
  test("reads the user's own account, agents and releases", async () => {
    const token = await relay.sessionToken(user.accountToken);
    const calls: Call[] = [
      ["GET", "/account"],
      ["GET", "/agents"],
      ["GET", `/agents/${device.agentId}`],
      ["GET", "/releases"],
      ["GET", "/releases/check?channel=stable&version=1.0.0"],
    ];
    for (const call of calls) expect([call, (await send(call, token)).status]).toEqual([call, 200]);
  });

  test("is 403 for writes, for answers with a persistent token, and under /admin", async () => {
    const token = await relay.sessionToken(admin.accountToken);
    const own = await relay.device(admin);
    const calls: Call[] = [
      ["PATCH", "/account", { password: "another one", current_password: PASSWORD }],
      ["POST", "/agents", { name: "x" }],
      ...agentCalls(own.agentId),
      ["POST", "/auth/session"],
      ["POST", "/auth/token/rotate"],
      ["POST", "/releases", { runtime: "node", channel: "stable", version: "1.0.0" }],
      ["GET", "/admin/stats"],
      ["GET", "/admin/users"],
      ["POST", "/admin/users", { username: "eve", password: PASSWORD, role: "admin" }],
      ["GET", "/admin/audit"],
    ];
    for (const call of calls) {
      expect([call, (await send(call, token)).status]).toEqual([call, 403]);
    }
    expect((await send(["GET", "/agents"], admin.accountToken)).json.items).toMatchObject([
      { agent_id: own.agentId },
    ]);
    await send(["DELETE", `/agents/${own.agentId}`], admin.accountToken);
  });
});

test("an agent's tokens are valid for releases/check, and 401 everywhere else", async () => {
  const fields = { client_type: "agent", agent_id: device.agentId, api_token: device.relayToken };
  const { answer } = await relay.auth(fields);
  const calls: Call[] = [
    ["GET", "/account"],
    ["GET", "/agents"],
    ["GET", `/agents/${device.agentId}`],
    ...agentCalls(device.agentId),
    ["POST", "/auth/session"],
    ["GET", "/releases"],
    ["GET", "/admin/stats"],
  ];
  for (const token of [device.relayToken, answer.session_token]) {
    const check: Call = ["GET", "/releases/check?channel=stable&version=1.0.0"];
    expect((await send(check, token)).status).toBe(200);
    for (const call of calls) {
      expect([call, (await send(call, token)).status]).toEqual([call, 401]);
    }
  }
});

describe("people", () => {
  test("a login gives the same answer for a wrong name, password or code", async () => {
    const strict = await new Relay().start({ totp: true });
    try {
      const logIn = async (body: object) => {
        const { status, headers, json } = await strict.api("POST", "/auth/login", { body });
        const { request_id: _, ...rest } = json;
        const { date: __, "x-request-id": ___, ...same } = headers;
        return { status, headers: same, rest };
      };
      const code = strict.totpCode();
      const wrong = String((Number(code) + 1) % 1_000_000).padStart(6, "0");
      const right = { username: "ada", password: PASSWORD, totp_code: code };
      const answers = [
        await logIn({ ...right, username: "eve" }),
        await logIn({ ...right, password: "a wrong password" }),
        await logIn({ ...right, totp_code: wrong }),
        await logIn({ ...right, totp_code: undefined }),
      ];
      expect(answers[0]).toMatchObject({ status: 401, rest: { code: "INVALID_CREDENTIALS" } });
      for (const answer of answers.slice(1)) {
        expect({ ...answer, headers: null }).toEqual({ ...answers[0], headers: null });
        expect(Object.keys(answer.headers).sort()).toEqual(
          Object.keys((answers[0] as typeof answer).headers).sort(),
        );
      }
      expect(await logIn(right)).toMatchObject({ status: 200 });
    } finally {
      await strict.close();
    }
  });

  test("if codes are required, a login without enrolment can only enrol and confirm", async () => {
    const strict = await new Relay().start({ totp: true });
    try {
      const login = { username: "ada", password: PASSWORD, totp_code: strict.totpCode() };
      const { json: ada } = await strict.api("POST", "/auth/login", { body: login });
      const made = { username: "new", password: PASSWORD, role: "user" };
      const token = ada.access_token;
      expect((await strict.api("POST", "/admin/users", { token, body: made })).status).toBe(201);
      const body = { username: "new", password: PASSWORD };
      const { json: limited } = await strict.api("POST", "/auth/login", { body });
      expect(limited.user).toMatchObject({ totp_enabled: false, api_token: null });
      const as = { token: limited.access_token };
      expect((await strict.api("GET", "/agents", as)).json).toMatchObject({
        status: 403,
        code: "TOTP_ENROLMENT_REQUIRED",
      });
      const { json: enrolled } = await strict.api("POST", "/auth/totp/enroll", as);
      expect(enrolled.otpauth_uri).toContain(`secret=${enrolled.secret}`);
      const totp_code = strict.totpCode(enrolled.secret);
      const confirm = { ...as, body: { totp_code } };
      const { json: confirmed } = await strict.api("POST", "/auth/totp/confirm", confirm);
      expect(confirmed.recovery_codes).toHaveLength(10);
      const [recovery] = confirmed.recovery_codes;
      const logIn = async (code: string) =>
        (await strict.api("POST", "/auth/login", { body: { ...body, totp_code: code } })).status;
      expect(await logIn(totp_code)).toBe(401); // used to confirm
      expect(await logIn(recovery)).toBe(200);
      expect(await logIn(recovery)).toBe(401);
    } finally {
      await strict.close();
    }
  });

  test("a new password requires the current one", async () => {
    const own = await relay.user();
    const change = (current_password?: string) =>
      send(
        ["PATCH", "/account", { password: "another long one", current_password }],
        own.accountToken,
      );
    expect((await change()).status).toBeGreaterThanOrEqual(400);
    expect((await change("a wrong password")).status).toBeGreaterThanOrEqual(400);
    expect((await change(PASSWORD)).status).toBe(200);
    expect((await send(["GET", "/account"], own.accountToken)).status).toBe(401);
  });

  test("a logout ends the access token", async () => {
    const { accessToken } = await relay.logIn(user.username);
    expect((await send(["POST", "/auth/logout"], accessToken)).status).toBe(204);
    expect((await send(["GET", "/account"], accessToken)).status).toBe(401);
  });
});

describe("agents", () => {
  test("accept a proposed agent_id once on the whole relay, case-sensitively", async () => {
    const body = { name: "lamp", agent_id: "Lamp_1-x" };
    const made = await send(["POST", "/agents", body], user.accountToken);
    expect([made.status, made.json.agent_id]).toEqual([201, "Lamp_1-x"]);
    for (const { accountToken } of [user, admin]) {
      const { status, json } = await send(["POST", "/agents", body], accountToken);
      expect([status, json.code]).toEqual([409, "CONFLICT"]);
    }
    const lower = { ...body, agent_id: "lamp_1-x" };
    expect((await send(["POST", "/agents", lower], user.accountToken)).status).toBe(201);
    for (const agent_id of ["", "a b", "ä", "x".repeat(65)]) {
      const { status } = await send(
        ["POST", "/agents", { name: "x", agent_id }],
        user.accountToken,
      );
      expect([agent_id, status]).toEqual([agent_id, 422]);
    }
  });

  test("are shown with the presence of their links", async () => {
    const own = await relay.device(user);
    const shown = async () =>
      (await send(["GET", `/agents/${own.agentId}`], user.accountToken)).json;
    expect(await shown()).toMatchObject({ online: false, last_seen: null, runtime: null });
    const link = await relay.agent(own, { runtime: "node 26", firmware_version: "1.4.0" });
    expect(await shown()).toMatchObject({
      online: true,
      last_seen: new Date(relay.nowMs).toISOString(),
      runtime: "node 26",
      firmware_version: "1.4.0",
    });
    const client = await relay.client(user);
    await link.close();
    expect(await client.next()).toMatchObject({ agent_id: own.agentId, online: false });
    expect(await shown()).toMatchObject({ online: false, runtime: "node 26" });
  });
});

test("lists are read to their end by next_cursor, each item once", async () => {
  const own = await relay.user();
  const made: string[] = [];
  for (let i = 0; i < 5; i++) made.push((await relay.device(own)).agentId);
  const seen: string[] = [];
  let cursor: string | null = "";
  for (let pages = 0; cursor !== null; pages++) {
    expect(pages).toBeLessThan(4);
    const query: string = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const { json } = await send(["GET", `/agents?limit=2${query}`], own.accountToken);
    expect(Object.keys(json).sort()).toEqual(["items", "next_cursor"]);
    seen.push(...json.items.map(({ agent_id }: { agent_id: string }) => agent_id));
    cursor = json.next_cursor;
  }
  expect(seen.sort()).toEqual(made.sort());
  for (const path of ["/admin/users", "/admin/audit", "/releases"]) {
    const { json } = await send(["GET", `${path}?limit=1`], admin.accountToken);
    expect(Object.keys(json).sort(), path).toEqual(["items", "next_cursor"]);
  }
});

test("the audit log says who made, exported and rotated what, and no secret", async () => {
  relay.advance(1); // the newest come first
  const own = await relay.device(user);
  await send(["GET", `/agents/${own.agentId}/export`], user.accountToken);
  await send(["POST", `/agents/${own.agentId}/rotate-token`], user.accountToken);
  const { json, text } = await send(["GET", "/admin/audit?limit=3"], admin.accountToken);
  for (const entry of json.items) {
    expect(entry).toMatchObject({ subject: own.agentId, at: new Date(relay.nowMs).toISOString() });
    expect(JSON.stringify(entry)).toContain(user.id);
  }
  expect(text).not.toMatch(/(acct|agt|sess|login|key)_[0-9A-Za-z]{10}/);
});

describe("the relay's pages", () => {
  test.each(["/api/docs", "/api/redoc"])("%s loads nothing from elsewhere", async (path) => {
    const page = await relay.root("GET", path);
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toMatch(/default-src '(none|self)'/);
    expect(policy).not.toMatch(/https?:|\*|unsafe-eval/);
    const loaded = [...page.text.matchAll(/(?:src|href)="(?!data:)([^"]+)"/g)].map(
      ([, url]) => url as string,
    );
    expect(loaded.length).toBeGreaterThan(0);
    for (const each of loaded) {
      const { origin, pathname } = new URL(each, `${relay.url}${path}`);
      expect(origin).toBe(relay.url);
      expect([pathname, (await relay.root("GET", pathname)).status]).toEqual([pathname, 200]);
    }
  });

  test("describe REST and /wss", async () => {
    expect((await relay.root("GET", "/api/openapi.json")).json.openapi).toMatch(/^3\.1/);
    const { text, json } = await relay.root("GET", "/api/asyncapi.json");
    expect(json.asyncapi).toMatch(/^3\./);
    expect(text).toContain('"authenticated"');
  });
});
