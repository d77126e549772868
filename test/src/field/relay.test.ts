/** What talks to a relay: monitors, proxies, scanners, browsers, and people who log in. */
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { connect as connectClient } from "@blindrelay/client-sdk/node";
import { initStore, type RunningServer, startServer } from "@blindrelay/relay-server";
import { afterAll, beforeAll, expect, it } from "vitest";

const PASSWORD = "a long password";
const data = mkdtempSync(join(tmpdir(), "blindrelay-field-"));
let relay: RunningServer;
let base: string;
let token: string;

const logIn = (username: string, password = PASSWORD, headers = {}) =>
  fetch(`${base}/api/v1/auth/login`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ username, password }),
  });

beforeAll(async () => {
  // python-otr/gajim-otr#31
  const umask = process.umask(0);
  await initStore({ data, username: "ada", password: PASSWORD, totp: false });
  // nodejs/node#40702: a name may have several addresses, of which one answers.
  const names = await lookup("localhost", { all: true });
  const host = names.at(-1)?.address ?? "127.0.0.1";
  relay = await startServer({ data, host, port: 0, metricsPort: 0, logLevel: "silent" });
  process.umask(umask);
  base = `http://localhost:${new URL(relay.url).port}`;
  token = (await (await logIn("ada")).json()).user.api_token;
});
afterAll(async () => {
  await relay.stop();
  rmSync(data, { recursive: true });
});

it("what it writes is private, whatever the umask", () => {
  const paths = readdirSync(data, { recursive: true, encoding: "utf8" });
  expect(paths.length).toBeGreaterThan(4);
  expect(paths.filter((path) => (statSync(join(data, path)).mode & 0o077) !== 0)).toEqual([]);
});

it("is found by a name of several addresses", async () => {
  const client = await connectClient({ url: base, accountToken: token });
  client.close();
  expect((await fetch(`${base}/health/live`)).status).toBe(200);
});

// gotify/server#687
it.each(["/health/live", "/health/ready", "/console"])(
  "a monitor may ask HEAD %s",
  async (path) => {
    expect((await fetch(base + path, { method: "HEAD" })).status).toBe(200);
  },
);

// kubestellar/console#7374
it.each(["bearer ", "BEARER ", "Bearer  "])(
  "a proxy may write %j before a token",
  async (scheme) => {
    const headers = { authorization: scheme + token };
    expect((await fetch(`${base}/api/v1/account`, { headers })).status).toBe(200);
  },
);

// rosedu/vmchecker#44, NodeBB/NodeBB#6894
it("a user name may be typed with the space that phones add", async () => {
  expect((await logIn(" ada ")).status).toBe(200);
});

it("a proxy that speaks only HTTP/2 is told so at once", async () => {
  const socket = connect(Number(new URL(base).port), "localhost");
  await once(socket, "connect");
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  expect(await text(socket)).toMatch(/^HTTP\/1\.1 400 /);
});

// ory/hydra#2502
it("a scanner's paths do not become series of metrics", async () => {
  const series = async () => {
    const lines = (await (await fetch(relay.metricsUrl ?? "")).text()).split("\n");
    return lines.filter((line) => !line.startsWith("#")).map((line) => line.split(" ")[0]);
  };
  const before = await series();
  for (let i = 0; i < 20; i++) {
    await fetch(`${base}/${i}.php`);
    await fetch(`${base}/api/v1/agents/agent-${i}`, {
      headers: { authorization: `Bearer ${token}` },
    });
  }
  expect((await series()).sort()).toEqual(before.sort());
});

// The last: it locks this address out. stjet/Faucet-v2#23
it("an address that a client claims to have does not free it from the lockout", async () => {
  const answers: number[] = [];
  for (let i = 0; i < 6; i++) {
    const claimed = `203.0.113.${i}`;
    const headers = {
      "x-forwarded-for": claimed,
      "x-real-ip": claimed,
      forwarded: `for=${claimed}`,
    };
    answers.push((await logIn("ada", "a wrong password", headers)).status);
  }
  expect(answers).toEqual([401, 401, 401, 401, 401, 429]);
});
