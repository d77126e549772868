/** Attacks on REST and the upgrade by bare sockets, against a relay in its own process. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { PASSWORD, type RelayProcess, startRelayProcess } from "../overload/relay-process.ts";

let relay: RelayProcess;
beforeAll(async () => {
  relay = await startRelayProcess();
});
afterAll(() => relay.stop());

/** Sends these bytes, and returns what comes until the relay closes, or 5 s have passed. */
const exchange = async (text: string, endsAfter = false): Promise<string> => {
  const socket = connect(relay.port, "127.0.0.1");
  let got = "";
  socket.on("error", () => undefined);
  socket.on("data", (chunk: Buffer) => {
    got += chunk.toString("latin1");
  });
  socket.setTimeout(5_000, () => socket.destroy());
  if (endsAfter) socket.end(text, "latin1");
  else socket.write(text, "latin1");
  await once(socket, "close");
  return got;
};

const get = (path: string, more = ""): Promise<string> =>
  exchange(`GET ${path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${more}\r\n`);

const bearer = () => `Authorization: Bearer ${relay.account}\r\n`;

/** Enough to leave any folder. */
const up = (step: string): string => step.repeat(12);

const TRAVERSALS = [
  `/console/${up("../")}etc/passwd`,
  `/console/${up("..%2f")}etc%2fpasswd`,
  `/console/${up("%2e%2e/")}etc/passwd`,
  "/console/%2e%2e/%2e%2e/package.json",
  "/console//etc/passwd",
  "/console/__proto__",
  "/console/constructor",
  `/api/docs/${up("../")}etc/passwd`,
  "/api/docs/__proto__",
  "/api/docs/constructor",
  "//example.com/%2f..",
  "/%5cexample.com",
  "/https://example.com/",
];

test.each(TRAVERSALS)("%s finds nothing, and leads nowhere", async (path) => {
  const answer = await get(path, bearer());
  expect(answer).toMatch(/^HTTP\/1\.1 (400|404) /);
  expect(answer).not.toMatch(/^location:/im);
  expect(answer).not.toMatch(/root:|"dependencies"/);
});

const deep = (levels: number): string => `${"[".repeat(levels)}${"]".repeat(levels)}`;

const wide = (members: number): string =>
  Array.from({ length: members }, (_, n) => `"m${n}":1`).join(",");

const BODIES: readonly (readonly [string, string, number])[] = [
  ["10,000 levels", `{"name":"a","metadata":{"a":${deep(10_000)}}}`, 422],
  ["500 members", `{"name":"a","metadata":{${wide(500)}}}`, 201],
  ["5,000 members", `{"name":"a","metadata":{${wide(5_000)}}}`, 422],
  ["a key twice", '{"name":"b","name":"a"}', 201],
  ["__proto__", '{"name":"a","__proto__":{"role":"admin"}}', 400],
  ["a deeper __proto__", '{"name":"a","metadata":{"a":[{"__proto__":{"b":1}}]}}', 400],
  ["an escaped one", '{"name":"a","\\u005f_proto__":{"role":"admin"}}', 400],
  ["constructor.prototype", '{"name":"a","constructor":{"prototype":{"role":"admin"}}}', 400],
  ["a byte order mark", '\u00ef\u00bb\u00bf{"name":"a"}', 201],
  ["a lone surrogate", '{"name":"\\ud800"}', 201],
  ["half an object", '{"name":"a"', 400],
  ["nothing", "", 422],
  ["an array", "[]", 422],
  ["a number as a name", '{"name":1}', 422],
];

test.each(BODIES)("a body with %s is answered without a fault", async (_what, body, expected) => {
  const head =
    `POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${bearer()}` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body, "latin1")}\r\n\r\n`;
  const answer = await exchange(head + body);
  expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${expected} `));
  if (expected === 201) expect(answer).toMatch(/"name":"(?:a|\u00ef\u00bf\u00bd)"/);
});

const CURSORS = [
  "\0",
  "null",
  "__proto__",
  "-1",
  "9".repeat(400),
  "A".repeat(4_000),
  "e30",
  "W10",
  "eyJpZCI6Iic7LS0ifQ",
  "' or 1=1 --",
  "%",
  "_",
];
const LISTS = ["agents", "admin/users", "admin/audit", "releases"];

const list = (path: string, token: string) => relay.api("GET", `/${path}`, undefined, token);

test.each(CURSORS)("the cursor %j is none of any list", async (cursor) => {
  for (const path of LISTS) {
    const answer = await list(`${path}?cursor=${encodeURIComponent(cursor)}`, relay.account);
    expect([path, answer.status, answer.body.code]).toEqual([path, 422, "VALIDATION_FAILED"]);
  }
});

test("the cursor of one user shows nothing of that user to another", async () => {
  const body = { username: "mallory", password: PASSWORD, role: "user" };
  await relay.api("POST", "/admin/users", body, relay.account);
  const login = await relay.api("POST", "/auth/login", { username: "mallory", password: PASSWORD });
  const token = login.body.user.api_token;
  for (const name of ["x", "y"]) await relay.api("POST", "/agents", { name }, relay.account);
  const { next_cursor: cursor } = (await list("agents?limit=1", relay.account)).body;
  const mine = await list(`agents?cursor=${cursor}`, relay.account);
  expect(mine.body.items.length).toBeGreaterThan(0);
  const theirs = await list(`agents?cursor=${cursor}`, token);
  expect([theirs.status, theirs.body.items]).toEqual([200, []]);
});

const UPGRADE =
  "GET /wss HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n" +
  "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n";

test("600 upgrades that are reset at once, and a FIN behind one, leave nothing", async () => {
  const resets = Array.from({ length: 600 }, async () => {
    const socket = connect(relay.port, "127.0.0.1");
    socket.on("error", () => undefined);
    await once(socket, "connect");
    socket.write(UPGRADE, () => socket.resetAndDestroy());
    await once(socket, "close");
  });
  await Promise.all(resets);
  expect(await exchange(UPGRADE, true)).toMatch(/^HTTP\/1\.1 (101|503) /);
  await expect
    .poll(async () => {
      const stats = await relay.api("GET", "/admin/stats", undefined, relay.account);
      return JSON.stringify(stats.body.connections);
    })
    .toMatch(/^\{("\w+":0,?)+\}$/);
  expect(relay.isAlive()).toBe(true);
});
