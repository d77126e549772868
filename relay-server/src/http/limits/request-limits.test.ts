/** How many requests one user, one agent and one address may make (docs/limits.md). */
import { PassThrough } from "node:stream";
import type { LightMyRequestResponse } from "fastify";
import { afterEach, expect, onTestFinished, test, vi } from "vitest";
import { DEFAULT_QUOTAS, type Quotas } from "../../control/quotas.ts";
import { type Rest, startRest } from "../testing/test-rest.ts";
import { Pace } from "./pace.ts";
import { Untaken } from "./untaken-answers.ts";

let rest: Rest;
afterEach(() => rest.close());

const start = async (quotas: Partial<Quotas>): Promise<void> => {
  rest = await startRest({ quotas: { ...DEFAULT_QUOTAS, ...quotas } });
};
const statuses = (answers: LightMyRequestResponse[]) => answers.map((answer) => answer.statusCode);

test("a user's requests have a common rate for all tokens, separate from other users'", async () => {
  await start({ requestsPerMinute: 5, anonymousRequestsPerMinute: 1 });
  const { access_token, user } = await rest.login();
  const other = await rest.addUser("bob");
  const ask = (token: string) => rest.call("GET", "/account", { token });
  const answers = [];
  for (const token of [user.api_token, access_token, user.api_token, access_token]) {
    answers.push(await ask(token));
  }
  expect(statuses(answers)).toEqual([200, 200, 200, 200]);
  expect((await ask(access_token)).statusCode).toBe(200);
  const refused = await ask(user.api_token);
  expect(refused.statusCode).toBe(429);
  expect(refused.headers["content-type"]).toBe("application/problem+json");
  expect(refused.json()).toMatchObject({ status: 429, code: "RATE_LIMITED" });
  expect(Number(refused.headers["retry-after"])).toBeGreaterThan(0);
  expect(Number(refused.headers["retry-after"])).toBeLessThanOrEqual(60);
  expect((await ask(other)).statusCode).toBe(200);
});

test("a user who does not take answers gets no more of them, but may change things; every answer is counted", async () => {
  await start({});
  const { user } = await rest.login();
  const ask = () => rest.call("GET", "/account", { token: user.api_token });
  const added = vi.spyOn(Untaken.prototype, "add");
  const answer = await ask();
  const counted = [user.id, answer.body.length, expect.anything(), expect.anything()];
  expect(added.mock.calls).toEqual([counted]);
  const over = vi.spyOn(Untaken.prototype, "isOver").mockReturnValueOnce(true);
  const refused = await ask();
  expect(refused.json()).toMatchObject({
    status: 429,
    code: "RATE_LIMITED",
    detail: "Answers of this account wait to be taken.",
  });
  expect((await ask()).statusCode).toBe(200);
  over.mockReturnValue(true);
  const made = await rest.call("POST", "/agents", { token: user.api_token, body: { name: "a" } });
  expect(made.statusCode).toBe(201);
  added.mockRestore();
  over.mockRestore();
});

test("whatever access keys send, their account can end them", async () => {
  await start({ requestsPerMinute: 3, requestsAtOnce: 1 });
  const { user } = await rest.login();
  const account = { token: user.api_token };
  const body = { name: "ci", scopes: ["call"] };
  const key = (await rest.call("POST", "/account/keys", { ...account, body })).json();
  const session = (more = {}) =>
    rest.call("POST", "/auth/session", { token: key.api_token, ...more });
  expect((await session()).statusCode).toBe(200);
  const slow = new PassThrough();
  const headers = { "content-type": "application/json", "content-length": "2" };
  const inTheWay = [session({ body: slow, headers }), session(), session(), session()];
  expect((await Promise.race(inTheWay)).statusCode).toBe(429);
  const removed = await rest.call("DELETE", `/account/keys/${key.id}`, account);
  expect(removed.statusCode).toBe(204);
  slow.end("{}");
  await Promise.all(inTheWay);
});

test("a long request waits among those of its own sort: of an access key, or of the account", async () => {
  await start({});
  const { user } = await rest.login();
  const account = { token: user.api_token };
  const body = { name: "ci", scopes: ["read"] };
  const key = (await rest.call("POST", "/account/keys", { ...account, body })).json();
  // More than are read in one turn.
  for (let i = 0; i < 9; i += 1) {
    await rest.call("POST", "/agents", { ...account, body: { name: "a" } });
  }
  const goOn = vi.spyOn(Pace.prototype, "goOn");
  onTestFinished(() => goOn.mockRestore());
  const queues = async (token: string) => {
    goOn.mockClear();
    await rest.call("GET", "/agents", { token });
    return goOn.mock.calls.map(([queue]) => queue);
  };
  const ofKey = `keys of ${user.id}`;
  expect(await queues(key.api_token)).toEqual([ofKey, ofKey]);
  expect(await queues(user.api_token)).toEqual([user.id, user.id]);
});

test("an agent's requests count for the agent, not for its owner", async () => {
  await start({ requestsPerMinute: 3 });
  const { user } = await rest.login();
  const made = await rest.call("POST", "/agents", { token: user.api_token, body: { name: "a" } });
  const token = made.json().api_token;
  const check = "/releases/check?channel=stable&version=1.0.0";
  const answers = [];
  for (let i = 0; i < 4; i++) answers.push(await rest.call("GET", check, { token }));
  expect(statuses(answers).at(-1)).toBe(429);
  expect(statuses(answers).slice(0, 3)).not.toContain(429);
  expect((await rest.call("GET", "/account", { token: user.api_token })).statusCode).toBe(200);
});

test("without valid credentials the address counts, and health is not counted", async () => {
  await start({ anonymousRequestsPerMinute: 3 });
  const config = (address: string) => rest.call("GET", "/auth/config", { address });
  const bad = () => rest.call("GET", "/account", { address: "192.0.2.7" });
  expect((await config("192.0.2.7")).statusCode).toBe(200);
  expect((await bad()).statusCode).toBe(401);
  expect((await bad()).statusCode).toBe(401);
  expect((await bad()).statusCode).toBe(429);
  expect((await config("192.0.2.7")).statusCode).toBe(429);
  expect((await rest.call("GET", "/nothing", { address: "192.0.2.7" })).statusCode).toBe(429);
  expect((await config("192.0.2.8")).statusCode).toBe(200);
  for (let i = 0; i < 5; i++) {
    const health = await rest.call("GET", "/health", { address: "192.0.2.7" });
    expect(health.statusCode).toBe(200);
  }
});

test("a user's agents and their metadata have a quota; removing some makes room", async () => {
  await start({ agentsPerUser: 2, metadataBytesPerUser: 100 });
  const { user } = await rest.login();
  const token = user.api_token;
  const make = (agent_id: string, metadata = {}, headers = {}) =>
    rest.call("POST", "/agents", { token, body: { name: "n", agent_id, metadata }, headers });
  expect((await make("a", { x: "x".repeat(60) })).statusCode).toBe(201);
  const tooMuch = await make("b", { x: "x".repeat(60) });
  expect([tooMuch.statusCode, tooMuch.json().code]).toEqual([403, "QUOTA_EXCEEDED"]);
  expect((await make("b")).statusCode).toBe(201);
  const patch = (id: string, metadata: object) =>
    rest.call("PATCH", `/agents/${id}`, { token, body: { metadata } });
  expect((await patch("b", { x: "x".repeat(60) })).json().code).toBe("QUOTA_EXCEEDED");
  expect((await patch("a", { y: "x".repeat(60) })).statusCode).toBe(200);
  const key = { "idempotency-key": "once" };
  const tooMany = await make("c", {}, key);
  expect([tooMany.statusCode, tooMany.json().code]).toEqual([403, "QUOTA_EXCEEDED"]);
  expect(tooMany.json().detail).toContain("2 agents");
  await rest.call("DELETE", "/agents/b", { token });
  expect((await make("c", {}, key)).statusCode).toBe(201);
  const other = await rest.addUser("bob");
  const theirs = { token: other, body: { name: "n" } };
  expect((await rest.call("POST", "/agents", theirs)).statusCode).toBe(201);
});

test("the quota of agents applies to concurrent creations", async () => {
  await start({ agentsPerUser: 2 });
  const { user } = await rest.login();
  const made = ["a", "a", "b", "c", "d"].map((agent_id) =>
    rest.call("POST", "/agents", { token: user.api_token, body: { name: "n", agent_id } }),
  );
  const codes = (await Promise.all(made)).map(({ statusCode }) => statusCode);
  expect(codes).toEqual([201, 409, 201, 403, 403]);
});

test("a page of agents with much metadata ends early and continues with its cursor", async () => {
  await start({});
  const { user } = await rest.login();
  const metadata = JSON.stringify({ x: "x".repeat(8000) });
  await rest.context.store.write(async (tx) => {
    for (let i = 0; i < 70; i += 1) {
      const agent_id = `a${String(i).padStart(2, "0")}`;
      const row = { agent_id, user_id: user.id, name: "n", metadata, created_at: i };
      await tx.insertInto("agents").values(row).execute();
    }
  });
  const seen: string[] = [];
  let pages = 0;
  for (let cursor: string | null = ""; cursor !== null; pages += 1) {
    const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
    const answer = await rest.call("GET", `/agents?limit=100${query}`, { token: user.api_token });
    expect(answer.body.length).toBeLessThan(300_000);
    const page = answer.json();
    for (const { agent_id } of page.items) seen.push(agent_id);
    cursor = page.next_cursor;
  }
  expect(new Set(seen).size).toBe(70);
  expect(seen).toHaveLength(70);
  expect(pages).toBeGreaterThan(2);
});

test("documents and bundles are sent once to clients that cache them", async () => {
  await start({});
  for (const path of [
    "/api/openapi.json",
    "/api/asyncapi.json",
    "/api/docs",
    "/api/docs/page.js",
    "/console",
  ]) {
    const first = await rest.app.inject({ url: path });
    expect(first.statusCode, path).toBe(200);
    const etag = first.headers.etag as string;
    expect(etag).toMatch(/^"[\w-]{43}"$/);
    // The latter as a proxy that compresses makes it.
    for (const known of [etag, `W/${etag}`]) {
      const again = await rest.app.inject({ url: path, headers: { "if-none-match": known } });
      expect([again.statusCode, again.body, again.headers.etag]).toEqual([304, "", etag]);
    }
    const other = await rest.app.inject({ url: path, headers: { "if-none-match": '"x"' } });
    expect(other.body).toBe(first.body);
  }
});

test("an invalid Host is 400, not a fault", async () => {
  await start({});
  for (const host of ["x:99999", "a b", "x/y", "[::1"]) {
    const answer = await rest.app.inject({ url: "/api/asyncapi.json", headers: { host } });
    expect([answer.statusCode, answer.json().code], host).toEqual([400, "BAD_REQUEST"]);
  }
});
