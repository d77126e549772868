/**
 * The whole relay on real sockets: what REST ends, ends on `/wss` too, and both count failures
 * together.
 */
import { once } from "node:events";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { request } from "node:http";
import { connect as connectTcp, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pino } from "pino";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { systemClocks } from "./base/clock.ts";
import { initStore, openData } from "./control/data-dir.ts";
import { rekey } from "./control/key-rotation.ts";
import { masterKeyPath } from "./control/master-key.ts";
import { createLog } from "./log.ts";
import { backupStore } from "./ops/backup.ts";
import { checkRelay } from "./ops/check.ts";
import { setDisabled } from "./ops/users.ts";
import { type RunningServer, startServer } from "./server.ts";
import { RETENTION_EVERY_MS } from "./store/retention.ts";
import { callRest, connectPeer } from "./testing/peer.ts";

const PASSWORD = "correct horse";
const LOG = createLog("silent");

let data: string;
let server: RunningServer;
let stopped: boolean;
beforeEach(async () => {
  data = mkdtempSync(join(tmpdir(), "blindrelay-server-"));
  await initStore({ data, username: "admin", password: PASSWORD, totp: false });
  server = await start();
  stopped = false;
});
afterEach(async () => {
  if (!stopped) await server.stop();
  rmSync(data, { recursive: true });
});

const start = () => startServer({ data, port: 0, metricsPort: 0 }, { log: LOG });

const api = (method: string, path: string, token: string | null, body?: object) =>
  callRest(server.url, method, path, token, body);

const logIn = async (password = PASSWORD) =>
  api("POST", "/auth/login", null, { username: "admin", password });

const connect = (auth: object) => connectPeer(server.url, { client_type: "client", ...auth });

const asAgent = (agent: { agent_id: string; api_token: string }) =>
  connect({ client_type: "firmware", agent_id: agent.agent_id, api_token: agent.api_token });

test("one round trip: login, agent, both links, a bare packet there and back", async () => {
  const { body } = await logIn();
  const account = body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const device = await asAgent(agent);
  expect(device.answer).toMatchObject({ status: "authenticated", expires_in: 86400 });
  const shown = (await api("GET", `/agents/${agent.agent_id}`, account)).body;
  expect(shown).toMatchObject({ online: true, last_seen: expect.stringContaining("T") });
  const client = await connect({ api_token: account });
  const packet = { v: "1", sid: "C", seq: 0, p: "x" };
  const payload = JSON.stringify(packet);
  client.send({ type: "relay", agent_id: agent.agent_id, payload, request_id: "r" });
  expect(await device.next()).toEqual({
    type: "relay",
    agent_id: agent.agent_id,
    payload,
    request_id: "r",
  });
  const answer = { ...packet, sid: "C.A" };
  device.send(answer);
  expect(await client.next()).toEqual(answer);
});

test("a clock that jumps ahead and is corrected ends no link, and no token permanently", async () => {
  await server.stop();
  let aheadMs = 0;
  const { steadyMs } = systemClocks();
  const clocks = { steadyMs, wallMs: () => Date.now() + aheadMs };
  server = await startServer({ data, port: 0, metricsPort: 0 }, { log: LOG, clocks });
  const { body } = await logIn();
  const link = await connect({ api_token: body.user.api_token });
  const again = () => connect({ session_token: link.answer.session_token });
  const read = () => api("GET", "/account", body.access_token);
  aheadMs = 2 * 86_400_000;
  expect((await again()).answer.code).toBe("SESSION_EXPIRED");
  expect((await read()).body.code).toBe("SESSION_EXPIRED");
  const payload = JSON.stringify({ v: "1", sid: "C", seq: 0, p: "x" });
  link.send({ type: "relay", agent_id: "nobody", payload, request_id: "r" });
  expect(await link.next()).toMatchObject({ type: "error", code: "AGENT_NOT_FOUND" });
  aheadMs = 0;
  expect((await again()).answer.status).toBe("authenticated");
  expect((await read()).status).toBe(200);
  link.send({ type: "relay", agent_id: "nobody", payload, request_id: "s" });
  expect(await link.next()).toMatchObject({ request_id: "s" });
});

test("a clock that has just jumped deletes no audit entries", async () => {
  await server.stop();
  let aheadMs = 0;
  const { steadyMs } = systemClocks();
  const clocks = { steadyMs, wallMs: () => Date.now() + aheadMs };
  const timers = vi.spyOn(globalThis, "setInterval");
  server = await startServer({ data, port: 0, metricsPort: 0 }, { log: LOG, clocks });
  const [tidy] = timers.mock.calls.find(([, ms]) => ms === RETENTION_EVERY_MS) as [
    () => Promise<void>,
  ];
  timers.mockRestore();
  const token = (await logIn()).body.access_token;
  await api("POST", "/agents", token, { name: "pump" });
  const audit = async () => (await api("GET", "/admin/audit", token)).body.items;
  const before = await audit();
  expect(before).toHaveLength(1);
  aheadMs = 500 * 86_400_000;
  await tidy();
  aheadMs = 0;
  expect(await audit()).toEqual(before);
});

test("a folder allows one relay, and commands while it runs", async () => {
  const second = start();
  await expect(second).rejects.toMatchObject({ exitCode: 4 });
  await expect(second).rejects.toThrow("another relay runs on");
  await setDisabled({ data }, "admin", false);
  expect(backupStore(data, undefined, join(data, "backup")).bytes).toBeGreaterThan(0);
  const findings = await checkRelay({ data, store: "sqlite" }, undefined, Date.now());
  expect(findings.find(({ what }) => what === "permissions")).toMatchObject({ ok: true });
  expect((await logIn()).status).toBe(200);
  await server.stop();
  server = await start();
});

test("rotating an agent's token ends its link at once, and only the new token comes in", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const other = (await api("POST", "/agents", account, { name: "valve" })).body;
  const [device, bystander] = [await asAgent(agent), await asAgent(other)];
  const rotated = (await api("POST", `/agents/${agent.agent_id}/rotate-token`, account)).body;
  expect(await device.next()).toMatchObject({ type: "error", code: "REVOKED" });
  expect(await device.next()).toEqual({ closed: 1008 });
  expect((await asAgent(agent)).answer).toMatchObject({ error: "Invalid token", retry_after: 0 });
  const { session_token } = device.answer;
  const stale = { client_type: "agent", agent_id: agent.agent_id, session_token };
  expect((await connect(stale)).answer).toMatchObject({ error: "Invalid token" });
  expect((await asAgent({ ...agent, ...rotated })).answer.status).toBe("authenticated");
  bystander.send({ type: "ping" });
  expect(await bystander.next()).toEqual({ type: "pong" });
});

test("what an agent reported at its login is shown, even after a restart", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const { agent_id, api_token } = agent;
  const said = { runtime: "espruino 2v25 ESP32", firmware_version: "1.4.0" };
  const { answer } = await connect({ client_type: "firmware", agent_id, api_token, ...said });
  expect(answer.status).toBe("authenticated");
  await server.stop();
  server = await start();
  expect((await api("GET", `/agents/${agent_id}`, account)).body).toMatchObject({
    ...said,
    online: false,
  });
});

test("disabling a user by command ends the links of the user's clients and agents on a running relay", async () => {
  const account = (await logIn()).body.user.api_token;
  const grace = { username: "grace", password: PASSWORD, role: "user" };
  expect((await api("POST", "/admin/users", account, grace)).status).toBe(201);
  const hers = (await api("POST", "/auth/login", null, grace)).body.user.api_token;
  const agent = (await api("POST", "/agents", hers, { name: "pump" })).body;
  const [device, client] = [await asAgent(agent), await connect({ api_token: hers })];
  const mine = await connect({ api_token: account });
  expect((await api("GET", "/admin/stats", account)).body).toMatchObject({
    users: 2,
    agents: { total: 1, online: 1 },
    connections: { client: 2, firmware: 1 },
  });
  await setDisabled({ data }, "grace", true);
  for (const link of [device, client]) {
    let message = await link.next();
    if (message.type === "agent_status") message = await link.next();
    expect(message).toMatchObject({ type: "error", code: "REVOKED" });
  }
  expect((await asAgent(agent)).answer).toMatchObject({ error: "Invalid token", retry_after: 0 });
  mine.send({ type: "ping" });
  expect(await mine.next()).toEqual({ type: "pong" });
  await setDisabled({ data }, "grace", false);
  expect((await asAgent(agent)).answer.status).toBe("authenticated");
  await expect(setDisabled({ data }, "admin", true)).rejects.toThrow("last admin");
  await expect(setDisabled({ data }, "nobody", true)).rejects.toThrow("no user nobody");
});

test("the master key is not rotated under a running relay; agents continue within the grace period", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  await expect(rekey({ data, graceDays: 1 })).rejects.toThrow("another relay runs");
  await server.stop();
  await rekey({ data, graceDays: 1 });
  server = await start();
  expect((await asAgent(agent)).answer.status).toBe("authenticated");
  const renewed = (await logIn()).body.user.api_token;
  expect(renewed).not.toBe(account);
  const exported = await api("GET", `/agents/${agent.agent_id}/export`, renewed);
  expect((await asAgent(exported.body)).answer.status).toBe("authenticated");
});

test("a relay stops when another node has rotated its store's key, and says why", async () => {
  const client = await connect({ api_token: (await logIn()).body.user.api_token });
  const other = await openData({ data });
  await other.store.db
    .updateTable("settings")
    .set({ value: "another key's" })
    .where("name", "=", "master_key_check")
    .execute();
  await other.store.close();
  expect((await server.failed).message).toContain("rotated");
  expect(await client.next()).toMatchObject({ code: "RESTARTING" });
});

test("deleting an agent ends its link", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const device = await asAgent(agent);
  expect((await api("DELETE", `/agents/${agent.agent_id}`, account)).status).toBe(204);
  expect(await device.next()).toMatchObject({ code: "REVOKED" });
  expect(await device.next()).toEqual({ closed: 1008 });
});

test("rotating the account token ends the clients' links, not the agents'", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const [device, client] = [await asAgent(agent), await connect({ api_token: account })];
  const rotated = await api("POST", "/auth/token/rotate", account);
  expect(await client.next()).toMatchObject({ code: "REVOKED" });
  expect(await client.next()).toEqual({ closed: 1008 });
  expect((await connect({ session_token: client.answer.session_token })).answer.error).toBe(
    "Invalid token",
  );
  expect((await connect({ api_token: rotated.body.api_token })).answer.status).toBe(
    "authenticated",
  );
  device.send({ type: "ping" });
  expect(await device.next()).toEqual({ type: "pong" });
});

test("logging out ends the links that the login's session tokens hold", async () => {
  const { access_token, user } = (await logIn()).body;
  const { session_token } = (await api("POST", "/auth/session", access_token)).body;
  const mine = await connect({ session_token });
  expect(mine.answer).toMatchObject({ status: "authenticated", session_token });
  const other = await connect({ api_token: user.api_token });
  await api("POST", "/auth/logout", access_token);
  expect(await mine.next()).toMatchObject({ code: "REVOKED" });
  other.send({ type: "ping" });
  expect(await other.next()).toEqual({ type: "pong" });
});

test("failures over REST and /wss share one counter, and an open link is not affected", async () => {
  const account = (await logIn()).body.user.api_token;
  const client = await connect({ api_token: account });
  const waits = [(await logIn("wrong password")).headers.get("retry-after")];
  const bad = await connect({ api_token: "nonsense" });
  expect(bad.answer).toMatchObject({ error: "Invalid token", retry_after: 0 });
  await api("GET", "/account", "nonsense");
  await api("GET", "/account", "nonsense");
  bad.send({ type: "auth", client_type: "client", api_token: "nonsense" });
  expect(await bad.next()).toMatchObject({ status: "failed", retry_after: 600 });
  expect(await bad.next()).toEqual({ closed: 1008 });
  const refused = await api("GET", "/account", account);
  expect(refused.status).toBe(429);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(590);
  expect(waits).toEqual([null]);
  client.send({ type: "ping" });
  expect(await client.next()).toEqual({ type: "pong" });
});

test("metrics are on their own port, and count connections, failures and drops", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const [device, client] = [await asAgent(agent), await connect({ api_token: account })];
  await connect({ api_token: "nonsense" });
  client.send({ type: "relay", agent_id: agent.agent_id, payload: "x" });
  await device.next();
  client.send({ type: "relay", agent_id: "nobody", payload: "x" });
  expect(await client.next()).toMatchObject({ code: "AGENT_NOT_FOUND" });
  const text = await (await fetch(server.metricsUrl)).text();
  for (const line of [
    'blindrelay_connections{type="client"} 1',
    'blindrelay_connections{type="waiting"} 1',
    "blindrelay_agents_online 1",
    'blindrelay_forwarded_total{to="agent"} 1',
    'blindrelay_dropped_total{reason="AGENT_NOT_FOUND"} 1',
    "blindrelay_auth_failures_total 1",
    "blindrelay_lockouts_total 0",
    "blindrelay_queue_bytes 0",
  ]) {
    expect(text).toContain(`${line}\n`);
  }
  expect(text).toContain("nodejs_eventloop_lag_p99_seconds");
  expect((await fetch(server.metricsUrl.replace("/metrics", "/"))).status).toBe(404);
  expect((await fetch(`${server.url}/metrics`)).status).toBe(404);
});

test("an upgrade on a path other than /wss is an ordinary request", async () => {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
  };
  const elsewhere = request(`${server.url}/api/v1/account`, { headers }).end();
  const [answer] = await once(elsewhere, "response");
  expect(answer.statusCode).toBe(401);
  answer.resume();
});

test("a stop sends RESTARTING to all links, closes with 1012, and keeps what was written", async () => {
  const account = (await logIn()).body.user.api_token;
  const agent = (await api("POST", "/agents", account, { name: "pump" })).body;
  const device = await asAgent(agent);
  const url = server.url;
  const ending = server.stop();
  stopped = true;
  const notice = await device.next();
  expect(notice).toMatchObject({ type: "error", code: "RESTARTING" });
  expect(notice.reconnect_in).toBeGreaterThanOrEqual(0);
  expect(await device.next()).toEqual({ closed: 1012 });
  await ending;
  await expect(fetch(`${url}/health`)).rejects.toThrow();
  server = await start();
  stopped = false;
  const { last_seen, online } = (await api("GET", `/agents/${agent.agent_id}`, account)).body;
  expect(online).toBe(false);
  expect(last_seen).not.toBeNull();
  expect((await asAgent(agent)).answer.status).toBe("authenticated");
  const { session_token } = device.answer;
  const back = { client_type: "agent", agent_id: agent.agent_id, session_token };
  expect((await connect(back)).answer).toMatchObject({ status: "authenticated", session_token });
});

test.each([
  [0o644, "others may enter or read KEY: chmod go= KEY"],
  [0o640, "a group may enter or read KEY; if not meant: chmod g= KEY"],
])(
  "a key readable by more than its owner causes a warning at the start: %o",
  async (mode, text) => {
    await server.stop();
    const key = masterKeyPath(data);
    chmodSync(key, mode);
    const lines: string[] = [];
    const log = pino({ level: "warn" }, { write: (line: string) => lines.push(line) });
    server = await startServer({ data, port: 0, metricsPort: 0 }, { log });
    expect(lines.map((line) => JSON.parse(line).msg)).toEqual([text.replaceAll("KEY", key)]);
  },
);

test("a host that this machine does not have is reported with its fix", async () => {
  await server.stop();
  stopped = true;
  for (const settings of [{ host: "192.0.2.1" }, { metricsHost: "192.0.2.1" }]) {
    const starting = startServer({ data, port: 0, metricsPort: 0, ...settings }, { log: LOG });
    await expect(starting).rejects.toThrow(/EADDRNOTAVAIL.* as --(metrics-)?host$/);
  }
});

test("a port in use is reported with its fix", async () => {
  await server.stop();
  stopped = true;
  const taken = createServer().listen(0, "127.0.0.1");
  await once(taken, "listening");
  const { port } = taken.address() as { port: number };
  for (const settings of [
    { port, metricsPort: 0 },
    { port: 0, metricsPort: port },
  ]) {
    const starting = startServer({ data, ...settings }, { log: LOG });
    await expect(starting).rejects.toThrow(/EADDRINUSE.*choose another --(metrics-)?port, or 0/);
    await expect(starting).rejects.toMatchObject({ exitCode: 4 });
  }
  taken.close();
});

test("a request in progress when the relay stops is answered, and idle connections are closed", async () => {
  const { hostname, port } = new URL(server.url);
  const silent = connectTcp(Number(port), hostname).resume();
  await once(silent, "connect");
  const letGo = once(silent, "close");
  const body = JSON.stringify({ username: "admin", password: PASSWORD });
  const headers = {
    "content-type": "application/json",
    "content-length": body.length,
    expect: "100-continue", // its response shows that the relay has begun
  };
  const login = request(`${server.url}/api/v1/auth/login`, { method: "POST", headers });
  login.flushHeaders();
  await once(login, "continue");
  const ended = server.stop();
  stopped = true;
  login.end(body);
  const [answer] = await once(login, "response");
  expect(answer.statusCode).toBe(200);
  answer.resume();
  await Promise.all([ended, letGo]);
});
