/** `/admin`: users, figures and the audit log. */
import { AdminStats, AdminUser, AdminUserPage, AuditPage } from "@blindrelay/protocol/schema/rest";
import { Value } from "typebox/value";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { deleteUser } from "../../control/user-admin.ts";
import { PASSWORD, type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
let token: string;
let adminId: string;
beforeEach(async () => {
  rest = await startRest();
  const { user } = await rest.login();
  token = user.api_token;
  adminId = user.id;
});
afterEach(() => rest.close());

const make = (body: object) => rest.call("POST", "/admin/users", { token, body });
const change = (id: string, body: object) =>
  rest.call("PATCH", `/admin/users/${id}`, { token, body });
const login = (username: string, password = PASSWORD) =>
  rest.call("POST", "/auth/login", { body: { username, password } });
const acts = async (query = ""): Promise<{ action: string; subject: string }[]> =>
  (await rest.call("GET", `/admin/audit${query}`, { token })).json().items;

test.each([
  ["GET", "/admin/stats"],
  ["GET", "/admin/users"],
  ["POST", "/admin/users"],
  ["GET", "/admin/users/x"],
  ["PATCH", "/admin/users/x"],
  ["DELETE", "/admin/users/x"],
  ["GET", "/admin/audit"],
])("%s %s requires the admin role, and refuses session tokens", async (method, path) => {
  const user = await rest.addUser("user");
  const { session_token } = (await rest.call("POST", "/auth/session", { token })).json();
  for (const as of [user, session_token]) {
    const answer = await rest.call(method, path, { token: as });
    expect([answer.statusCode, answer.json().code]).toEqual([403, "FORBIDDEN"]);
  }
  expect((await rest.call(method, path)).statusCode).toBe(401);
});

describe("users", () => {
  test("are created, and can log in", async () => {
    const made = await make({ username: "grace", password: PASSWORD, role: "user" });
    expect(made.statusCode).toBe(201);
    expect(Value.Check(AdminUser, made.json())).toBe(true);
    expect(made.json()).toMatchObject({ username: "grace", role: "user", disabled: false });
    expect(made.body).not.toContain("acct_");
    const { user } = (await login("grace")).json();
    expect(user.api_token).toMatch(/^acct_/);
    expect((await make({ username: "grace", password: PASSWORD, role: "user" })).statusCode).toBe(
      409,
    );
    const page = (await rest.call("GET", "/admin/users", { token })).json();
    expect(Value.Check(AdminUserPage, page)).toBe(true);
    expect(page.items.map((item: AdminUser) => item.username)).toEqual(["admin", "grace"]);
    expect((await rest.call("GET", `/admin/users/${user.id}`, { token })).json()).toEqual(
      made.json(),
    );
  });

  test.each([
    { username: "a b" },
    { password: "short" },
    { role: "root" },
    { username: undefined },
  ])("%j is refused", async (wrong) => {
    const body = { username: "grace", password: PASSWORD, role: "user", ...wrong };
    expect((await make(body)).statusCode).toBe(422);
  });

  test("disabled: login, tokens, sessions and links of the user and the user's agents end at once", async () => {
    const { id } = (await make({ username: "grace", password: PASSWORD, role: "user" })).json();
    const { access_token, user } = (await login("grace")).json();
    const account = user.api_token;
    const agent = (
      await rest.call("POST", "/agents", { token: account, body: { name: "x", agent_id: "x" } })
    ).json().api_token;
    const session = (await rest.call("POST", "/auth/session", { token: account })).json();
    expect((await change(id, { disabled: true })).json().disabled).toBe(true);
    expect(rest.ended).toEqual([["end_user", id]]);
    for (const each of [account, access_token, session.session_token]) {
      expect((await rest.call("GET", "/agents", { token: each })).statusCode).toBe(401);
    }
    const check = "/releases/check?channel=stable&version=1.0.0";
    expect((await rest.call("GET", check, { token: agent })).statusCode).toBe(401);
    expect((await login("grace")).statusCode).toBe(401);
    expect((await login("grace")).headers["retry-after"]).toBeUndefined();

    await change(id, { disabled: false });
    expect((await rest.call("GET", "/agents", { token: account })).statusCode).toBe(200);
    expect((await rest.call("GET", check, { token: agent })).statusCode).toBe(200);
    expect((await login("grace")).statusCode).toBe(200);
    for (const each of [access_token, session.session_token]) {
      expect((await rest.call("GET", "/agents", { token: each })).statusCode).toBe(401);
    }
  });

  test("deleted: everything they own is gone, and the name is free", async () => {
    const { id } = (await make({ username: "grace", password: PASSWORD, role: "user" })).json();
    const { access_token, user } = (await login("grace")).json();
    const body = { name: "x", agent_id: "x" };
    const agent = (await rest.call("POST", "/agents", { token: user.api_token, body })).json();
    const answer = await rest.call("DELETE", `/admin/users/${id}`, { token });
    expect([answer.statusCode, answer.body]).toEqual([204, ""]);
    expect(rest.ended).toEqual([["end_user", id]]);
    for (const each of [user.api_token, access_token, agent.api_token]) {
      const check = "/releases/check?channel=stable&version=1.0.0";
      const refused = await rest.call("GET", check, { token: each });
      expect(refused.statusCode).toBe(401);
      expect(refused.headers["retry-after"]).toBeUndefined();
    }
    expect((await rest.call("DELETE", `/admin/users/${id}`, { token })).statusCode).toBe(404);
    expect((await make({ username: "grace", password: PASSWORD, role: "user" })).statusCode).toBe(
      201,
    );
    expect((await rest.call("POST", "/agents", { token, body })).statusCode).toBe(201);
  });

  test("deleted: what one of their requests is making at that moment is good for nothing", async () => {
    const leaver = await rest.addUser("leaver");
    const makes = (path: string, body?: object) =>
      rest.call("POST", path, { token: leaver, ...(body === undefined ? {} : { body }) });
    const [removed, ...made] = await Promise.all([
      rest.call("DELETE", "/admin/users/id-of-leaver", { token }),
      makes("/auth/token/rotate"),
      makes("/auth/session"),
      makes("/account/keys", { name: "ci", scopes: ["read"] }),
    ]);
    expect(removed.statusCode).toBe(204);
    for (const answer of made) {
      const { api_token, session_token = api_token } = answer.json();
      const { statusCode } = await rest.call("GET", "/releases", { token: session_token ?? "" });
      expect(statusCode).toBe(401);
    }
  });

  test("a new password by an admin ends what the old one gave; a lost second factor can be removed", async () => {
    const { id } = (await make({ username: "grace", password: PASSWORD, role: "user" })).json();
    const { user } = (await login("grace")).json();
    await change(id, { password: "another long one" });
    expect(rest.ended).toEqual([["end_clients", id]]);
    expect((await rest.call("GET", "/agents", { token: user.api_token })).statusCode).toBe(401);
    const again = (await login("grace", "another long one")).json();
    const as = { token: again.access_token };
    const drawn = (await rest.call("POST", "/auth/totp/enroll", as)).json();
    const body = { totp_code: rest.code(drawn.secret) };
    await rest.call("POST", "/auth/totp/confirm", { ...as, body });
    expect((await login("grace", "another long one")).statusCode).toBe(401);
    expect((await change(id, { totp_enabled: false })).json().totp_enabled).toBe(false);
    expect((await login("grace", "another long one")).statusCode).toBe(200);
  });

  test("a change of role applies from the next request", async () => {
    const { id } = (await make({ username: "grace", password: PASSWORD, role: "user" })).json();
    const { user } = (await login("grace")).json();
    const stats = () => rest.call("GET", "/admin/stats", { token: user.api_token });
    expect((await stats()).statusCode).toBe(403);
    await change(id, { role: "admin" });
    expect((await stats()).statusCode).toBe(200);
    await change(id, { role: "user" });
    expect((await stats()).statusCode).toBe(403);
  });
});

describe("the last admin", () => {
  test.each([
    ["demoted", "PATCH", { role: "user" }],
    ["disabled", "PATCH", { disabled: true }],
    ["deleted", "DELETE", undefined],
  ])("cannot be %s", async (_what, method, body) => {
    const path = `/admin/users/${adminId}`;
    const answer = await rest.call(method, path, { token, body });
    expect([answer.statusCode, answer.json().code]).toEqual([409, "CONFLICT"]);
    expect(rest.ended).toEqual([]);
    expect((await rest.call("GET", path, { token })).json()).toMatchObject({
      role: "admin",
      disabled: false,
    });
    expect(await acts()).toEqual([]);
  });

  test("remains the last when the others are disabled", async () => {
    const { id } = (await make({ username: "grace", password: PASSWORD, role: "admin" })).json();
    expect((await change(id, { disabled: true })).statusCode).toBe(200);
    expect((await change(adminId, { role: "user" })).statusCode).toBe(409);
    await change(id, { disabled: false });
    expect((await change(adminId, { role: "user" })).statusCode).toBe(200);
  });

  test("two admins who remove each other at once leave one", async () => {
    const { id } = (await make({ username: "grace", password: PASSWORD, role: "admin" })).json();
    // After the credentials check, which the removal of one of them would fail.
    const outcomes = await Promise.all([
      deleteUser(rest.context, adminId, id),
      deleteUser(rest.context, id, adminId),
    ]);
    expect(outcomes.sort()).toEqual(["deleted", "last_admin"]);
  });
});

test("stats have every figure", async () => {
  await rest.call("POST", "/agents", { token, body: { name: "x" } });
  await login("admin", "wrong password");
  const stats = (await rest.call("GET", "/admin/stats", { token })).json();
  expect(Value.Check(AdminStats, stats)).toBe(true);
  expect(stats).toMatchObject({
    uptime_s: 12,
    versions: { relay: "test", node: process.versions.node },
    users: 1,
    agents: { total: 1, online: 0 },
    connections: { client: 0, agent: 0, firmware: 0, waiting: 0, closing: 0 },
    messages: { forwarded: 0, dropped: {} },
    auth_failures: 1,
    lockouts: 0,
    queue_bytes: 0,
    event_loop_delay: { mean_ms: 0.5, p99_ms: 2, max_ms: 9 },
  });
});

describe("the audit log", () => {
  test("says who did what to what, newest first, and contains no secret", async () => {
    const secrets: string[] = [PASSWORD, token];
    const step = () => {
      rest.clock.nowMs += 1;
    };
    const body = { name: "Pump", agent_id: "pump-7" };
    secrets.push((await rest.call("POST", "/agents", { token, body })).json().api_token);
    step();
    await rest.call("GET", "/agents/pump-7/export", { token });
    step();
    const rotated = await rest.call("POST", "/agents/pump-7/rotate-token", { token });
    secrets.push(rotated.json().api_token);
    step();
    const { id } = (
      await make({ username: "grace", password: "a new password", role: "user" })
    ).json();
    step();
    await change(id, { role: "admin", password: "a newer password" });
    step();
    await rest.call("DELETE", `/admin/users/${id}`, { token });
    step();
    await rest.call("DELETE", "/agents/pump-7", { token });
    step();
    const { access_token } = await rest.login();
    secrets.push(access_token, "a new password", "a newer password");
    const account = await rest.call("POST", "/auth/token/rotate", { token: access_token });
    token = account.json().api_token;
    secrets.push(token);

    const answer = await rest.call("GET", "/admin/audit", { token });
    expect(Value.Check(AuditPage, answer.json())).toBe(true);
    const entries = answer.json().items;
    expect(entries.map((entry: { action: string }) => entry.action).slice(0, 3)).toEqual([
      "user.rotate_token",
      "agent.delete",
      "user.delete",
    ]);
    expect(new Set(entries.map((entry: { action: string }) => entry.action))).toEqual(
      new Set([
        "user.rotate_token",
        "agent.delete",
        "user.delete",
        "user.password",
        "user.role",
        "user.create",
        "agent.rotate_token",
        "agent.export",
        "agent.create",
      ]),
    );
    expect(entries.at(-1)).toMatchObject({
      actor: { id: adminId, username: "admin" },
      action: "agent.create",
      subject: "pump-7",
      detail: { name: "Pump" },
    });
    for (const secret of secrets) expect(answer.body).not.toContain(secret);
  });

  test("can be filtered by action, actor or subject, and read in pages", async () => {
    for (const agent_id of ["a", "b", "c"]) {
      rest.clock.nowMs += 1;
      await rest.call("POST", "/agents", { token, body: { name: "x", agent_id } });
    }
    await rest.call("DELETE", "/agents/b", { token });
    expect(await acts("?action=agent.delete")).toMatchObject([{ subject: "b" }]);
    expect(await acts("?subject=b")).toHaveLength(2);
    expect(await acts(`?actor_id=${adminId}`)).toHaveLength(4);
    expect(await acts("?actor_id=nobody")).toEqual([]);
    const seen: string[] = [];
    let cursor: string | null = null;
    do {
      const query: string = cursor === null ? "" : `&cursor=${cursor}`;
      const page = (await rest.call("GET", `/admin/audit?limit=3${query}`, { token })).json();
      seen.push(...page.items.map(({ id }: { id: string }) => id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(new Set(seen).size).toBe(4);
    expect((await rest.call("GET", "/admin/audit?action=nonsense", { token })).statusCode).toBe(
      422,
    );
  });

  test("has no entry for what did not happen", async () => {
    await rest.call("POST", "/agents", { token, body: { name: "x", agent_id: "a" } });
    const before = (await acts()).length;
    await rest.call("POST", "/agents", { token, body: { name: "x", agent_id: "a" } });
    await rest.call("DELETE", "/agents/nobody", { token });
    await rest.call("GET", "/agents/nobody/export", { token });
    await make({ username: "admin", password: PASSWORD, role: "user" });
    expect(await acts()).toHaveLength(before);
  });
});
