/** `/agents`, over a real store and without sockets. */
import { AgentCreated, AgentPage, Agent as AgentSchema } from "@blindrelay/protocol/schema/rest";
import { Value } from "typebox/value";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Rest, startRest } from "../testing/test-rest.ts";

let rest: Rest;
let token: string;
beforeEach(async () => {
  rest = await startRest();
  token = (await rest.login()).user.api_token;
});
afterEach(() => rest.close());

const create = async (body: object) => (await rest.call("POST", "/agents", { token, body })).json();

describe("creating", () => {
  test("a new agent has never been seen, and is returned with its relay token", async () => {
    const answer = await rest.call("POST", "/agents", { token, body: { name: "Pump 7" } });
    expect(answer.statusCode).toBe(201);
    const agent = answer.json();
    expect(Value.Check(AgentCreated, agent)).toBe(true);
    expect(agent).toMatchObject({
      name: "Pump 7",
      online: false,
      last_seen: null,
      runtime: null,
      firmware_version: null,
      metadata: {},
    });
    expect(agent.agent_id).toMatch(/^pump-7-[a-z]{10}$/);
    expect(agent.api_token).toMatch(/^agt_[0-9A-Za-z]{49}$/);
    expect(answer.headers.location).toBe(`/api/v1/agents/${agent.agent_id}`);
    expect(answer.headers["cache-control"]).toBe("no-store");
  });

  test("a proposed identifier is used unchanged, once on the whole relay", async () => {
    expect((await create({ name: "x", agent_id: "A_1" })).agent_id).toBe("A_1");
    const stranger = await rest.addUser("stranger");
    const again = await rest.call("POST", "/agents", {
      token: stranger,
      body: { name: "y", agent_id: "A_1" },
    });
    expect(again.statusCode).toBe(409);
    expect(again.json()).toMatchObject({ status: 409, code: "CONFLICT" });
    expect((await create({ name: "z", agent_id: "a_1" })).agent_id).toBe("a_1");
  });

  test.each([
    ["no name", {}, "/"],
    ["an empty name", { name: "" }, "/name"],
    ["a control character", { name: "a\u0000b" }, "/name"],
    ["a foreign letter in the identifier", { name: "x", agent_id: "a b" }, "/agent_id"],
    ["an identifier of 65", { name: "x", agent_id: "a".repeat(65) }, "/agent_id"],
    ["metadata that is a list", { name: "x", metadata: [] }, "/metadata"],
    ["metadata over its limit", { name: "x", metadata: { a: "x".repeat(8192) } }, "/metadata"],
  ])("%s is refused with its location", async (_what, body, path) => {
    const answer = await rest.call("POST", "/agents", { token, body });
    expect(answer.statusCode).toBe(422);
    const problem = answer.json();
    expect(problem.code).toBe("VALIDATION_FAILED");
    expect(
      problem.errors.some((error: { path: string }) => `${error.path}/`.startsWith(path)),
    ).toBe(true);
  });

  test.each<[string, Record<string, string>]>([
    ["without a key", {}],
    ["with an Idempotency-Key", { "idempotency-key": "deep" }],
  ])("metadata nested deeper than the stack is refused, not a fault, %s", async (_, more) => {
    const body = `{"name":"x","metadata":{"toJSON":1,"a":${"[".repeat(32_000)}${"]".repeat(32_000)}}}`;
    const answer = await rest.call("POST", "/agents", {
      token,
      body,
      headers: { "content-type": "application/json", ...more },
    });
    expect(answer.statusCode).toBe(422);
  });
});

describe("reading", () => {
  test("returns one agent, with what the hub knows", async () => {
    const { agent_id } = await create({ name: "valve", metadata: { room: { nr: 4 } } });
    rest.online.add(agent_id);
    const answer = await rest.call("GET", `/agents/${agent_id}`, { token });
    expect(answer.statusCode).toBe(200);
    expect(Value.Check(AgentSchema, answer.json())).toBe(true);
    expect(answer.json()).toMatchObject({ agent_id, online: true, metadata: { room: { nr: 4 } } });
    expect(answer.json()).not.toHaveProperty("api_token");
  });

  test("pages contain each agent once, in order of creation, and end with null", async () => {
    for (let i = 0; i < 5; i += 1) {
      rest.clock.nowMs += i % 2; // some at the same millisecond
      await create({ name: "n", agent_id: `a${i}` });
    }
    const seen: string[] = [];
    let cursor: string | null = "";
    do {
      const query: string = cursor === "" ? "" : `&cursor=${cursor}`;
      const answer = await rest.call("GET", `/agents?limit=2${query}`, { token });
      const page = answer.json();
      expect(Value.Check(AgentPage, page)).toBe(true);
      seen.push(...page.items.map((agent: { agent_id: string }) => agent.agent_id));
      cursor = page.next_cursor;
    } while (cursor !== null);
    expect(seen).toEqual(["a0", "a1", "a2", "a3", "a4"]);
  });

  test("a page that is exactly full is the last one", async () => {
    await create({ name: "n" });
    const page = (await rest.call("GET", "/agents?limit=1", { token })).json();
    expect(page.items).toHaveLength(1);
    expect(page.next_cursor).toBeNull();
  });

  test.each(["limit=0", "limit=201", "limit=x", "cursor=nonsense", "cursor=MTIz"])(
    "%s is refused",
    async (query) => {
      expect((await rest.call("GET", `/agents?${query}`, { token })).statusCode).toBe(422);
    },
  );
});

test("PATCH changes the given fields, and replaces metadata as a whole", async () => {
  const { agent_id } = await create({ name: "old", metadata: { a: 1 } });
  const path = `/agents/${agent_id}`;
  const renamed = await rest.call("PATCH", path, { token, body: { name: "new" } });
  expect(renamed.json()).toMatchObject({ name: "new", metadata: { a: 1 } });
  const changed = await rest.call("PATCH", path, { token, body: { metadata: { b: 2 } } });
  expect(changed.json()).toMatchObject({ name: "new", metadata: { b: 2 } });
  expect((await rest.call("PATCH", path, { token, body: {} })).json().name).toBe("new");
});

test("DELETE ends link and tokens at once, and the identifier is free again", async () => {
  const { agent_id, api_token } = await create({ name: "x" });
  const answer = await rest.call("DELETE", `/agents/${agent_id}`, { token });
  expect([answer.statusCode, answer.body]).toEqual([204, ""]);
  expect(rest.ended).toEqual([["forget_agent", agent_id]]);
  expect((await rest.call("GET", `/agents/${agent_id}`, { token })).statusCode).toBe(404);
  const again = await create({ name: "x", agent_id });
  expect(again.agent_id).toBe(agent_id);
  expect(again.api_token).not.toBe(api_token);
});

test("rotation ends only this agent's link and returns a new token, which export repeats", async () => {
  const { agent_id, api_token, created_at } = await create({ name: "x" });
  const exported = await rest.call("GET", `/agents/${agent_id}/export`, {
    token,
    headers: { host: "relay.example:8443" },
  });
  expect(exported.headers["cache-control"]).toBe("no-store");
  expect(exported.json()).toEqual({
    agent_id,
    api_token,
    relay_url: "ws://relay.example:8443/wss",
    created_at,
  });
  expect(rest.ended).toEqual([]);
  const rotated = await rest.call("POST", `/agents/${agent_id}/rotate-token`, { token });
  expect(rotated.statusCode).toBe(200);
  expect(Object.keys(rotated.json())).toEqual(["agent_id", "api_token", "rotated_at"]);
  expect(rotated.json().api_token).not.toBe(api_token);
  expect(rest.ended).toEqual([["end_agent", agent_id]]);
  const after = await rest.call("GET", `/agents/${agent_id}/export`, { token });
  expect(after.json().api_token).toBe(rotated.json().api_token);
});

test.each([
  ["GET", ""],
  ["PATCH", ""],
  ["DELETE", ""],
  ["POST", "/rotate-token"],
  ["GET", "/export"],
])("%s on somebody else's agent%s is the same 404 as on an unknown one", async (method, suffix) => {
  const { agent_id } = await create({ name: "x" });
  const stranger = await rest.addUser("stranger");
  const body = method === "PATCH" ? { name: "mine" } : undefined;
  const theirs = await rest.call(method, `/agents/${agent_id}${suffix}`, { token: stranger, body });
  const none = await rest.call(method, `/agents/nobody${suffix}`, { token: stranger, body });
  const { request_id: _one, ...theirProblem } = theirs.json();
  const { request_id: _other, ...noneProblem } = none.json();
  expect(theirs.statusCode).toBe(404);
  expect(theirProblem).toEqual(noneProblem);
  expect((await rest.call("GET", `/agents/${agent_id}`, { token })).json().name).toBe("x");
});

test("a list shows only the user's own agents", async () => {
  await create({ name: "x" });
  const stranger = await rest.addUser("stranger");
  expect((await rest.call("GET", "/agents", { token: stranger })).json().items).toEqual([]);
});
