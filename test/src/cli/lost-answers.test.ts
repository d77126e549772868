/** A POST whose answer is lost on the way is done once, and its caller gets what it made. */
import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import { inspect } from "node:util";
import { Rest as NodeRest } from "@blindrelay/client-sdk/rest";
import { fetchHttp, Rest as RestCore, type RestOptions } from "@blindrelay/client-sdk/rest/core";
import { afterAll, beforeAll, beforeEach, expect, it } from "vitest";
import { House, PASSWORD } from "./processes.ts";

const house = new House();
let way: Server;
let url: string;
let token: string;
/** What came of each POST: its path and its key. */
const posts: (readonly [path: string, key: string | undefined])[] = [];
/** So many more answers to a POST do not arrive: how they are lost. */
let losing = 0;
let lose: "cut" | "late" | "proxy" = "cut";

beforeAll(async () => {
  await house.open();
  way = createServer(async (request, response) => {
    const { method = "", url: path = "", headers } = request;
    const body = method === "GET" ? null : await buffer(request);
    const { connection: _, host: _host, ...sent } = headers as Record<string, string>;
    const answer = await fetch(`${house.url}${path}`, { method, headers: sent, body });
    const text = await answer.text();
    if (method === "POST") posts.push([path, sent["idempotency-key"]]);
    if (method === "POST" && losing > 0) {
      losing--;
      if (lose === "cut") response.socket?.destroy();
      if (lose === "proxy") response.writeHead(504).end("<h1>Gateway Timeout</h1>");
      return;
    }
    const { status } = answer;
    response.writeHead(status, { "content-type": answer.headers.get("content-type") ?? "" });
    response.end(text);
  });
  way.listen(0, "127.0.0.1");
  await once(way, "listening");
  url = `http://127.0.0.1:${(way.address() as AddressInfo).port}`;
  const login = await new NodeRest({ url }).logIn({ username: "ada", password: PASSWORD });
  token = login.user.api_token ?? "";
});
afterAll(async () => {
  way.closeAllConnections();
  way.close();
  await house.close();
});
beforeEach(() => {
  posts.length = losing = 0;
  lose = "cut";
});

const restOf = (options: Partial<RestOptions> = {}) => new NodeRest({ url, token, ...options });
const named = async (name: string) =>
  (await restOf().list("AgentPage", "/agents", {})).filter((agent) => agent.name === name);
const tokenOf = async (id: string) =>
  (await restOf().ask("AgentExport", "GET", `/agents/${id}/export`)).api_token;

const EDGES = {
  "node:http": (options: RestOptions) => new NodeRest(options),
  fetch: (options: RestOptions) =>
    new RestCore(options, { http: fetchHttp, check: async () => null }),
};

it.each([
  ["node:http", "cut"],
  ["fetch", "cut"],
  ["node:http", "proxy"],
  ["node:http", "late"],
] as const)("over %s, %s, it is asked again and makes one agent", async (edge, how) => {
  [lose, losing] = [how, 1];
  const name = `${edge} ${how}`;
  const limits = how === "late" ? { answerMs: 1000 } : {};
  const made = await EDGES[edge]({ url, token, limits }).ask("AgentCreated", "POST", "/agents", {
    name,
  });
  expect(posts).toHaveLength(2);
  expect(new Set(posts.map(([, key]) => key)).size).toBe(1);
  expect((await named(name)).map(({ agent_id }) => agent_id)).toEqual([made.agent_id]);
  expect(await tokenOf(made.agent_id)).toBe(made.api_token);
});

it("who asks for the same after the failure gets the same agent, then another one", async () => {
  losing = 2;
  const rest = restOf();
  const make = () => rest.ask("AgentCreated", "POST", "/agents", { name: "Twice" });
  await expect(make()).rejects.toThrow("cannot be reached");
  const made = await make();
  expect((await named("Twice")).map(({ agent_id }) => agent_id)).toEqual([made.agent_id]);
  const [another, third] = await Promise.all([make(), make()]);
  expect(new Set([made, another, third].map(({ agent_id }) => agent_id)).size).toBe(3);
});

it("a password whose request was lost is not kept, so it is asked for under another key", async () => {
  losing = 2;
  const rest = restOf();
  const user = { username: "grace", password: PASSWORD, role: "user" };
  const make = () => rest.ask("User", "POST", "/admin/users", user);
  await expect(make()).rejects.toThrow("cannot be reached");
  expect(inspect(rest, { depth: null })).not.toContain(PASSWORD);
  await expect(make()).rejects.toMatchObject({ status: 409 });
  expect(new Set(posts.map(([, key]) => key)).size).toBe(2);
});

it("a renewed relay token is that of the lost answer", async () => {
  const { agent_id } = await restOf().ask("AgentCreated", "POST", "/agents", { name: "Renewed" });
  losing = 1;
  const path = `/agents/${agent_id}/rotate-token`;
  const { api_token } = await restOf().ask("RotateAgentAnswer", "POST", path);
  expect(await tokenOf(agent_id)).toBe(api_token);
});

it("a refusal of the second request, which says nothing of the first, is not the outcome", async () => {
  losing = 1;
  const rest = restOf();
  const made = rest.ask("AgentCreated", "POST", "/agents", { name: "In doubt" });
  await expect.poll(() => posts.length).toBe(1);
  // As if the token had been rotated meanwhile.
  Object.assign(rest, { token: "acct_other" });
  await expect(made).rejects.toMatchObject({ code: "UNREACHABLE" });
});

it("agent add keeps the secret of the one agent that it made", async () => {
  const login = ["login", "--url", url, "--username", "ada", "--password-stdin"];
  expect((await house.cli(login, {}, `${PASSWORD}\n`)).code).toBe(0);
  losing = 1;
  const { code, stdout } = await house.cli(["agent", "add", "By command"]);
  expect(code).toBe(0);
  const [agent, ...more] = await named("By command");
  expect([agent?.agent_id, more]).toEqual([stdout.trim(), []]);
  const { stdout: key } = await house.cli([
    ...["agent", "export", stdout.trim(), "--format", "keyring"],
  ]);
  expect(key).toContain("e2e_");
});

it("keys go with what the relay does once for a key, and nothing else is asked twice", async () => {
  const schema = await (await fetch(`${house.url}/api/openapi.json`)).json();
  const takes: string[] = [];
  const sends: string[] = [];
  for (const [path, { post }] of Object.entries<{ post?: { parameters?: { name: string }[] } }>(
    schema.paths,
  )) {
    if (post === undefined) continue;
    const asked = path.replace("/api/v1", "").replace("{agent_id}", "none");
    if (post.parameters?.some(({ name }) => name === "idempotency-key")) takes.push(asked);
    [posts.length, losing] = [0, 2];
    await expect(restOf({ token: null }).tell("POST", asked, {})).rejects.toThrow();
    const keys = posts.map(([, key]) => key);
    if (keys[0] !== undefined) sends.push(asked);
    expect([asked, keys.length]).toEqual([asked, keys[0] === undefined ? 1 : 2]);
  }
  expect(takes.length).toBeGreaterThan(3);
  expect(sends).toEqual(takes);
}, 30_000);
