/** Attacks on REST and the upgrade by bare sockets, against a relay in its own process. */
import { once } from "node:events";
import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type RelayProcess, startRelayProcess } from "../overload/relay-process.ts";

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

const TRAVERSALS = [
  "/../../etc/passwd",
  "/console/../../../../etc/passwd",
  "/console/..%2f..%2f..%2fetc/passwd",
  "/console/%2e%2e/%2e%2e/package.json",
  "/console/..%5c..%5cpackage.json",
  "/console/....//....//etc/passwd",
  "/console/%252e%252e%252fpackage.json",
  "/console/..;/package.json",
  "/console/%c0%ae%c0%ae/package.json",
  "/console//etc/passwd",
  "/api/docs/../../package.json",
  "/api/docs/..%2f..%2fpackage.json",
  "/api/redoc/%2e%2e%2f%2e%2e%2fpackage.json",
  "/api/docs/%00",
  "/api/v1/agents/..%2f..%2fadmin%2fusers",
  "/api/v1/agents/__proto__",
  "/api/v1/agents/constructor",
  "/api/v1/releases/toString/artifact",
  "/api/v1/__proto__",
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
  ["5,000 members", `{"name":"a","metadata":{${wide(5_000)}}}`, 201],
  ["a key twice", '{"name":"a","name":"b"}', 201],
  ["__proto__", '{"name":"a","__proto__":{"role":"admin"}}', 400],
  ["constructor.prototype", '{"name":"a","constructor":{"prototype":{"role":"admin"}}}', 400],
  ["a byte order mark", '\u00ef\u00bb\u00bf{"name":"a"}', 201],
  ["a lone surrogate", '{"name":"\\ud800"}', 201],
  ["half an object", '{"name":"a"', 400],
  ["nothing", "", 400],
  ["an array", "[]", 422],
  ["a number as a name", '{"name":1}', 422],
];

test.each(BODIES)("a body with %s is answered without a fault", async (_what, body, expected) => {
  const head =
    `POST /api/v1/agents HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${bearer()}` +
    `Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body, "latin1")}\r\n\r\n`;
  const [, status] = /^HTTP\/1\.1 (\d+)/.exec(await exchange(head + body)) ?? [];
  expect([expected, 400, 422]).toContain(Number(status));
  const admin = await relay.api("GET", "/account", undefined, relay.account);
  expect([admin.status, ({} as { role?: string }).role]).toEqual([200, undefined]);
});

const CURSORS = [
  "%00",
  "null",
  "__proto__",
  "-1",
  "9".repeat(400),
  "A".repeat(4_000),
  "e30",
  "W10",
  "eyJpZCI6Iic7LS0ifQ",
  "' or 1=1 --",
  "%25",
  "_",
];

test.each(CURSORS)("the cursor %s shows nothing of others", async (cursor) => {
  const query = encodeURIComponent(cursor);
  for (const list of ["agents", "admin/users", "admin/audit", "releases"]) {
    const answer = await relay.api("GET", `/${list}?cursor=${query}`, undefined, relay.account);
    expect([200, 400, 422], list).toContain(answer.status);
  }
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
