/** Access keys over REST: who makes them, and what each scope reaches, over every route. */
import { randomBytes } from "node:crypto";
import { makeToken } from "@blindrelay/protocol";
import { MAX_KEYS } from "@blindrelay/protocol/schema/rest";
import { KEY_SCOPES, type KeyScope } from "@blindrelay/protocol/selector";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const create = (body: object, by = token) =>
  rest.call("POST", "/account/keys", { token: by, body });
const deep = (levels: number): unknown => JSON.parse(`${"[".repeat(levels)}${"]".repeat(levels)}`);

const keyOf = async (scopes: readonly KeyScope[], where?: string): Promise<string> => {
  const name = makeToken("key", randomBytes(32)).slice(0, 20);
  const made = await create({ name, scopes, ...(where === undefined ? {} : { where }) });
  expect(made.statusCode).toBe(201);
  return made.json().api_token;
};
const addAgent = (agent_id: string, labels: object) =>
  rest.call("POST", "/agents", { token, body: { name: agent_id, agent_id, labels } });

/** What reaches each operation, as section 4 says; nothing else does. */
const REACHED_BY: { readonly [operation: string]: readonly KeyScope[] } = {
  "get /agents": ["read", "agents"],
  "get /agents/{agent_id}": ["read", "agents"],
  "post /agents": ["agents"],
  "patch /agents/{agent_id}": ["agents"],
  "delete /agents/{agent_id}": ["agents"],
  "post /agents/{agent_id}/rotate-token": ["agents"],
  "get /agents/{agent_id}/export": ["agents"],
  "post /auth/session": ["call"],
  "get /releases": ["read", "releases"],
  "get /releases/{id}": ["read", "releases"],
  "get /releases/{id}/artifact": ["read", "releases"],
  "get /releases/check": ["read", "releases"],
  "post /releases": ["releases"],
  "patch /releases/{id}": ["releases"],
  "delete /releases/{id}": ["releases"],
  "put /releases/{id}/artifact": ["releases"],
};
const CLOSED = [
  ...["get /account", "patch /account", "get /account/keys", "post /account/keys"],
  ...["delete /account/keys/{id}", "post /auth/logout", "post /auth/token/rotate"],
  ...["post /auth/totp/enroll", "post /auth/totp/confirm", "get /admin/stats", "get /admin/audit"],
  ...["get /admin/users", "post /admin/users", "get /admin/users/{id}"],
  ...["patch /admin/users/{id}", "delete /admin/users/{id}"],
];

describe("a key of each scope", () => {
  it("reaches what its scope names, over every operation that needs a token", async () => {
    const { paths } = (await rest.app.inject("/api/openapi.json")).json();
    const protectedOperations: string[] = [];
    for (const [path, methods] of Object.entries<Record<string, { security?: object[] }>>(paths)) {
      for (const [method, { security = [] }] of Object.entries(methods)) {
        if (security.length > 0)
          protectedOperations.push(`${method} ${path.replace("/api/v1", "")}`);
      }
    }
    const known = [...Object.keys(REACHED_BY), ...CLOSED];
    expect(protectedOperations.filter((operation) => !/ \/wss$/.test(operation)).sort()).toEqual(
      known.sort(),
    );
    for (const scope of KEY_SCOPES) {
      const key = await keyOf([scope]);
      const session =
        scope === "call"
          ? (await rest.call("POST", "/auth/session", { token: key })).json().session_token
          : null;
      for (const operation of known) {
        const [method = "", path = ""] = operation.split(" ");
        const url = path.replace("{agent_id}", "nobody").replace("{id}", "no-such");
        for (const held of session === null ? [key] : [key, session]) {
          const { statusCode } = await rest.call(method.toUpperCase(), url, {
            token: held,
            ...(["post", "patch", "put"].includes(method) ? { body: {} } : {}),
          });
          const may = held === key && (REACHED_BY[operation] ?? []).includes(scope);
          expect([operation, scope, statusCode === 403, statusCode === 401]).toEqual([
            operation,
            scope,
            !may,
            false,
          ]);
        }
      }
    }
    expect(rest.context.lockout.failuresLeft("192.0.2.1", rest.clock.nowMs)).toBe(
      rest.context.lockout.failuresLeft("192.0.2.99", rest.clock.nowMs),
    );
  });
});

describe("a key with a selector", () => {
  it("finds, changes, exports and deletes only the agents that match", async () => {
    await addAgent("lamp", { site: "hall" });
    await addAgent("pump", { site: "cellar" });
    const key = await keyOf(["agents"], "label.site=hall");
    const by = (method: string, path: string, body?: object) =>
      rest.call(method, path, { token: key, ...(body === undefined ? {} : { body }) });
    const { items } = (await by("GET", "/agents")).json();
    expect(items.map(({ agent_id }: { agent_id: string }) => agent_id)).toEqual(["lamp"]);
    expect((await by("GET", "/agents?where=label.site%3Dcellar")).json().items).toEqual([]);
    for (const [method, path, body] of [
      ["GET", "/agents/pump"],
      ["PATCH", "/agents/pump", { labels: { site: "hall" } }],
      ["DELETE", "/agents/pump"],
      ["POST", "/agents/pump/rotate-token"],
      ["GET", "/agents/pump/export"],
    ] as const) {
      expect([method, path, (await by(method, path, body)).statusCode]).toEqual([
        method,
        path,
        404,
      ]);
    }
    expect((await by("GET", "/agents/lamp/export")).statusCode).toBe(200);
    // It makes and leaves no agent that it would not see.
    const made = { name: "x", agent_id: "x" };
    expect((await by("POST", "/agents", made)).statusCode).toBe(403);
    expect((await by("POST", "/agents", { ...made, labels: { site: "cellar" } })).statusCode).toBe(
      403,
    );
    expect((await by("POST", "/agents", { ...made, labels: { site: "hall" } })).statusCode).toBe(
      201,
    );
    expect((await by("PATCH", "/agents/lamp", { labels: {} })).statusCode).toBe(403);
    expect((await by("PATCH", "/agents/lamp", { name: "Lamp" })).statusCode).toBe(200);
    const audit = (await rest.call("GET", "/admin/audit?subject=x", { token })).json();
    expect(audit.items[0]).toMatchObject({
      action: "agent.create",
      detail: { key: expect.any(String) },
    });
    expect((await by("DELETE", "/agents/x")).statusCode).toBe(204);
  });

  it("gets no answer that the account's own request had", async () => {
    const key = await keyOf(["agents"], "id=lamp");
    const headers = { "idempotency-key": "once" };
    const body = { name: "Lamp", agent_id: "lamp" };
    await rest.call("POST", "/agents", { token, headers, body });
    const again = await rest.call("POST", "/agents", { token: key, headers, body });
    expect([again.statusCode, again.json().api_token]).toEqual([409, undefined]);
  });

  it("gets its own first answer no more once the agent is hidden", async () => {
    const key = await keyOf(["agents"], "label.site=hall");
    const headers = { "idempotency-key": "mine" };
    const body = { name: "Lamp", agent_id: "lamp", labels: { site: "hall" } };
    const made = await rest.call("POST", "/agents", { token: key, headers, body });
    expect(made.statusCode).toBe(201);
    await rest.call("PATCH", "/agents/lamp", { token, body: { labels: {} } });
    const again = await rest.call("POST", "/agents", { token: key, headers, body });
    expect([again.statusCode, again.json().api_token]).toEqual([409, undefined]);
  });
});

describe("an account's keys", () => {
  it("are made once by name, listed without their tokens, and removed", async () => {
    const expires_at = new Date(rest.clock.nowMs + 60_000).toISOString();
    const made = await create({
      name: "ci",
      scopes: ["call", "read"],
      where: "id~pump*",
      expires_at,
    });
    expect(made.statusCode).toBe(201);
    const { api_token, ...shown } = made.json();
    expect(api_token).toMatch(/^key_/);
    expect(made.headers["cache-control"]).toBe("no-store");
    expect(shown).toMatchObject({
      name: "ci",
      scopes: ["call", "read"],
      where: "id~pump*",
      expires_at,
    });
    expect((await create({ name: "ci", scopes: ["read"] })).statusCode).toBe(409);
    expect((await rest.call("GET", "/agents", { token: api_token })).statusCode).toBe(200);
    const list = (await rest.call("GET", "/account/keys", { token })).json();
    expect(list.items).toEqual([
      { ...shown, last_used_at: new Date(rest.clock.nowMs).toISOString() },
    ]);
    expect(JSON.stringify(list)).not.toContain("key_");

    rest.clock.nowMs += 60_000;
    expect((await rest.call("GET", "/agents", { token: api_token })).statusCode).toBe(401);
    const path = `/account/keys/${shown.id}`;
    expect((await rest.call("DELETE", path, { token })).statusCode).toBe(204);
    expect(rest.ended).toContainEqual(["end_key", shown.id]);
    expect((await rest.call("DELETE", path, { token })).statusCode).toBe(404);
    expect((await create({ name: "ci", scopes: ["read"] })).statusCode).toBe(201);
  });

  it.each([
    ["a selector by what a device claims", { where: "firmware<2.0.0" }],
    ["a selector by presence", { where: "online=true" }],
    ["no selector", { where: "nonsense" }],
    ["no scope", { scopes: [] }],
    ["an unknown scope", { scopes: ["admin"] }],
    ["a scope twice", { scopes: ["read", "read"] }],
    ["a scope that is deeper than the stack", { scopes: deep(30_000) }],
    ["an end in the past", { expires_at: "2020-01-01T00:00:00.000Z" }],
    ["an end that ISO 8601 cannot say", { expires_at: "9999-12-31T23:59:59-23:59" }],
    ["a long name", { name: "x".repeat(65) }],
  ])("are refused with %s", async (_, wrong) => {
    const made = await create({ name: "ci", scopes: ["read"], ...wrong });
    expect(made.statusCode).toBe(422);
  });

  it("are bounded", async () => {
    const ids: string[] = [];
    for (let n = 0; n < MAX_KEYS; n += 1) {
      const made = await create({ name: `k${n}`, scopes: ["read"] });
      ids.push(made.json().id);
    }
    const refused = await create({ name: "one more", scopes: ["read"] });
    expect(refused.json().code).toBe("QUOTA_EXCEEDED");
    await rest.call("DELETE", `/account/keys/${ids[0]}`, { token });
    expect((await create({ name: "one more", scopes: ["read"] })).statusCode).toBe(201);
  });

  it("and what was made with them end with the key, and not with the account token", async () => {
    const key = await keyOf(["call", "read"]);
    const session = (await rest.call("POST", "/auth/session", { token: key })).json().session_token;
    const read = async (held: string) =>
      (await rest.call("GET", "/agents", { token: held })).statusCode;
    token = (await rest.call("POST", "/auth/token/rotate", { token })).json().api_token;
    expect([await read(key), await read(session)]).toEqual([200, 200]);
    const [{ id }] = (await rest.call("GET", "/account/keys", { token })).json().items;
    await rest.call("DELETE", `/account/keys/${id}`, { token });
    expect([await read(key), await read(session)]).toEqual([401, 401]);
  });

  it("end when their user is disabled", async () => {
    const theirs = await rest.addUser("bob");
    const made = await create({ name: "bobs", scopes: ["read"] }, theirs);
    const key = made.json().api_token;
    const path = "/admin/users/id-of-bob";
    for (const disabled of [true, false]) {
      await rest.call("PATCH", path, { token, body: { disabled } });
      expect((await rest.call("GET", "/agents", { token: key })).statusCode).toBe(401);
    }
  });
});
