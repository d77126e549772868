/** The handlers compared with the real relay: the same requests, the same answers. */
import { type Rest, startRest } from "@blindrelay/relay-server/testing";
import { getResponse } from "msw";
import { Errors } from "typebox/schema";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { MemoryRelay } from "../fake-device/memory-relay.ts";
import { relayHandlers } from "./handlers.ts";
import { OPERATIONS } from "./operations.generated.ts";

const PASSWORD = "correct horse";
const BASE = "https://relay.example";

type Body = Record<string, unknown> | undefined;
interface Answer {
  status: number;
  type: string;
  body: unknown;
}
type Ask = (method: string, path: string, token?: string | null, body?: unknown) => Promise<Answer>;

const relay = new MemoryRelay();
const handlers = relayHandlers(relay, { url: BASE, password: PASSWORD });
let rest: Rest;
let document: { paths: Record<string, Record<string, unknown>> };

beforeAll(async () => {
  rest = await startRest();
  document = (await rest.app.inject("/api/openapi.json")).json();
});
afterAll(async () => {
  relay.close();
  await rest.close();
});

const mocked: Ask = async (method, path, token = null, body = undefined) => {
  const headers = {
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(body === undefined ? {} : { "content-type": "application/json" }),
  };
  const sent = body === undefined ? {} : { body: JSON.stringify(body) };
  const request = new Request(`${BASE}${path}`, { method, headers, ...sent });
  const response = await getResponse(handlers as never, request);
  if (response === undefined) throw new Error(`no handler for ${method} ${path}`);
  const text = await response.text();
  return {
    status: response.status,
    type: response.headers.get("content-type") ?? "",
    body: text === "" ? undefined : JSON.parse(text),
  };
};

const real: Ask = async (method, path, token = null, body = undefined) => {
  const response = await rest.app.inject({
    method: method as "GET",
    url: path,
    headers: token === null ? {} : { authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { payload: body as object }),
  });
  return {
    status: response.statusCode,
    type: String(response.headers["content-type"] ?? ""),
    body: response.body === "" ? undefined : response.json(),
  };
};

/** A relay's answer without its times, tokens and identifiers. */
const shape = ({ status, type, body }: Answer) => {
  const { code, errors } = (body ?? {}) as { code?: string; errors?: { path: string }[] };
  const keys = Object.keys((body as Body) ?? {}).sort();
  return [status, type.split(";")[0], keys, code, errors?.map(({ path }) => path)];
};

interface Page {
  items: { agent_id: string }[];
  next_cursor: string;
}

/** A typical session, as a list of requests and answers. */
const walk = async (ask: Ask, username: string): Promise<unknown[]> => {
  const said: unknown[] = [];
  const api = async (method: string, path: string, token: string | null, body?: unknown) => {
    const answer = await ask(method, `/api/v1${path}`, token, body);
    said.push([method, path, ...shape(answer)]);
    return answer.body as Record<string, unknown>;
  };
  await api("GET", "/auth/config", null);
  await api("POST", "/auth/login", null, { username, password: "wrong" });
  await api("POST", "/auth/login", null, { username });
  const login = await api("POST", "/auth/login", null, { username, password: PASSWORD });
  const token = (login.user as { api_token: string }).api_token;
  await api("GET", "/account", token);
  await api("GET", "/agents", null);
  await api("GET", "/agents", "acct_nonsense");
  const made = await api("POST", "/agents", token, { name: "Lamp", agent_id: "lamp-1" });
  await api("POST", "/agents", token, { name: "Lamp", agent_id: "lamp-1" });
  await api("POST", "/agents", token, { name: "", metadata: 3 });
  await api("POST", "/agents", token, { name: "Another" });
  await api("GET", "/account", made.api_token as string);
  await api("GET", "/agents?limit=1&online=false", token);
  for (const limit of ["none", "05", "1.5", "0x1"])
    await api("GET", `/agents?limit=${limit}`, token);
  await api("GET", "/agents?online=1", token);
  await api("GET", "/agents?cursor=nonsense", token);
  await api("GET", "/agents?cursor=MTIz", token);
  await api("GET", "/agents?where=colour", token);
  await api("GET", "/agents?nothing=1", token);
  await api("GET", "/agents?limit=201", token);
  await api("POST", "/agents", token, { name: "Tag", labels: { "Not A Key": "x" } });
  await api("PATCH", "/agents/lamp-1", token, { labels: { A: "x" } });
  await api("PATCH", "/agents/lamp-1", token, { metadata: { text: "\u00fc".repeat(4_091) } });
  await api("PATCH", "/agents/lamp-1", token, { metadata: { text: "\u00fc".repeat(4_090) } });
  await api("PATCH", "/agents/lamp-1", token, {});
  await api("PATCH", "/agents/lamp-1", token, { nothing: 1 });
  // Who reads page by page goes on, though the agent at the end of a page has gone meanwhile.
  await api("POST", "/agents", token, { name: "Lamp", agent_id: "lamp-0" });
  const page = (await ask("GET", "/api/v1/agents?limit=2", token)).body as Page;
  const { items, next_cursor } = page;
  await ask("DELETE", `/api/v1/agents/${items[1]?.agent_id}`, token);
  const next = await ask(
    "GET",
    `/api/v1/agents?limit=2&cursor=${encodeURIComponent(next_cursor)}`,
    token,
  );
  said.push(["the next page", (next.body as Page).items.length, (next.body as Page).next_cursor]);
  await api("PATCH", "/agents/lamp-1", token, { name: "Lamp in the hall" });
  await api("GET", "/agents/lamp-1", login.access_token as string);
  await api("GET", "/agents/lamp-2", token);
  await api("GET", "/agents/lamp-1/export", token);
  await api("POST", "/agents/lamp-1/rotate-token", token);
  const session = await api("POST", "/auth/session", token);
  await api("GET", "/agents/lamp-1", session.session_token as string);
  await api("DELETE", "/agents/lamp-1", session.session_token as string);
  await api("DELETE", "/agents/lamp-1", token);
  await api("GET", "/agents/lamp-1", token);
  await api("GET", "/releases", token);
  await api("GET", "/admin/stats", token);
  await api("POST", "/auth/token/rotate", token);
  await api("GET", "/account", token);
  await api("POST", "/auth/logout", login.access_token as string);
  await api("GET", "/account", login.access_token as string);
  return said;
};

describe("the handlers", () => {
  test("answer as the relay does", async () => {
    expect(await walk(mocked, "ada")).toEqual(await walk(real, "admin"));
  });

  test("exist for every operation of the relay that takes and returns JSON", () => {
    const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`),
    );
    const handled = OPERATIONS.map(({ method, path }) => `${method} ${path}`);
    const without = documented.filter((name) => !handled.includes(name));
    expect(handled.length).toBeGreaterThan(30);
    expect(without).toEqual([
      ...["get /wss", "get /api/openapi.json", "get /api/asyncapi.json"],
      ...["get /api/docs", "get /api/docs/:asset", "get /api/redoc", "get /api/redoc/:asset"],
      ...["put /api/v1/releases/:id/artifact", "get /api/v1/releases/:id/artifact"],
    ]);
  });

  test("check requests with schemas that can refuse", () => {
    const bodies = OPERATIONS.flatMap(({ id, body }) => (body === null ? [] : [{ id, ...body }]));
    expect(bodies.length).toBeGreaterThan(8);
    for (const { id, schema } of bodies) expect([id, Errors(schema, 3)[0]]).toEqual([id, false]);
  });
});
