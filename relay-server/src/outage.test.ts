/**
 * A relay under requests while its PostgreSQL is cut off, frozen, stopped and restarted: it answers
 * 503 in time, does not crash, keeps every link, and forgets nothing that it has counted.
 */
import { spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { initStore } from "./control/data-dir.ts";
import { hashToken } from "./control/secrets.ts";
import { createLog } from "./log.ts";
import { type RunningServer, startServer } from "./server.ts";
import { openStore, type Store } from "./store/open.ts";
import { findSession } from "./store/sessions.ts";
import { POSTGRES, postgres } from "./store/testing/engines.ts";
import { type FlakyNetwork, flakyNetwork } from "./store/testing/flaky-network.ts";

const PASSWORD = "correct horse";
const engine = postgres();

describe.skipIf(engine.skipped)("PostgreSQL behind a network that fails", () => {
  let data: string;
  let network: FlakyNetwork;
  let server: RunningServer;
  let log: string[];
  /** Bypasses the network. */
  let direct: Store;
  let token: string;

  beforeAll(async () => {
    data = mkdtempSync(join(tmpdir(), "blindrelay-outage-"));
    const location = await engine.prepare();
    if (location.engine !== "postgres") throw new Error("this is about PostgreSQL");
    await initStore({
      data,
      store: location.url,
      username: "ada",
      password: PASSWORD,
      totp: false,
    });
    network = await flakyNetwork(POSTGRES);
    const store = new URL(location.url);
    store.host = `127.0.0.1:${network.port}`;
    const settings = { data, store: String(store), port: 0, metricsPort: 0 };
    log = [];
    const write = (line: string) => void log.push(line);
    server = await startServer(settings, { log: createLog("warn", { write }) });
    direct = await openStore(location, false);
    const login = await api("POST", "/auth/login", { username: "ada", password: PASSWORD });
    token = (await login.json()).user.api_token;
  });
  afterAll(async () => {
    network.heal();
    await server.stop();
    await direct.close();
    await network.close();
    await engine.remove();
    rmSync(data, { recursive: true });
  });
  beforeEach(async () => {
    network.heal();
    await vi.waitUntil(async () => (await fetch(`${server.url}/health/ready`)).ok, 120_000);
  });

  const api = (method: string, path: string, body?: object) =>
    fetch(`${server.url}/api/v1${path}`, {
      method,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
  const addAgent = () => api("POST", "/agents", { name: "x", agent_id: randomUUID() });
  const isReady = async () => (await fetch(`${server.url}/health/ready`)).ok;

  /** A client's link; what it sends is counted. */
  const link = async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/wss`);
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "auth", client_type: "client", api_token: token }));
    const [answer] = await once(socket, "message");
    const hash = hashToken(JSON.parse(String(answer)).session_token);
    const ask = async () => {
      const envelope = { type: "relay", agent_id: "nobody", request_id: randomUUID() };
      socket.send(JSON.stringify({ ...envelope, payload: '{"v":"1","sid":"C","seq":0,"p":"x"}' }));
      await once(socket, "message");
    };
    return { socket, ask, used: async () => (await findSession(direct.db, hash))?.requests_used };
  };

  test("connections that are cut during requests crash nothing, and acknowledged changes remain", async () => {
    const { socket } = await link();
    const statuses: number[] = [];
    const made: string[] = [];
    let busy = true;
    const worker = async () => {
      while (busy) {
        const answer = await addAgent();
        statuses.push(answer.status);
        const { agent_id } = await answer.json();
        if (answer.status === 201) made.push(agent_id);
      }
    };
    const workers = Array.from({ length: 8 }, worker);
    // At least five cuts, until one has hit a request and one request has succeeded in between: on
    // a busy machine a request may take longer than the wait, which therefore grows.
    const seen = () => statuses.includes(201) && statuses.includes(503);
    for (let i = 0; i < 5 || (i < 50 && !seen()); i += 1) {
      await sleep(40 + 20 * i);
      network.cut();
    }
    busy = false;
    await Promise.all(workers);
    expect(new Set(statuses)).toEqual(new Set([201, 503]));
    const kept = await direct.db.selectFrom("agents").select("agent_id").execute();
    expect(kept.map(({ agent_id }) => agent_id)).toEqual(expect.arrayContaining(made));
    expect(socket.readyState).toBe(WebSocket.OPEN);
    socket.terminate();
  });

  test("a frozen database is a 503 in time, for all concurrent requests", async () => {
    network.freeze();
    const startedMs = performance.now();
    const ready = isReady().then((ok) => [ok, performance.now() - startedMs] as const);
    const answers = await Promise.all(Array.from({ length: 30 }, addAgent));
    const tookMs = performance.now() - startedMs;
    for (const answer of answers) {
      expect(answer.status).toBe(503);
      expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
      expect(await answer.json()).toMatchObject({ code: "UNAVAILABLE" });
    }
    const [ok, readyMs] = await ready;
    expect(ok).toBe(false);
    // The guarantee is 1 s and 2 s. A busy machine gets ten times that; an unbounded wait still
    // fails.
    expect(readyMs).toBeLessThan(10_000);
    expect(tookMs).toBeLessThan(20_000);
    // Nobody waits again for a known outage. A pause of this process may fall into any one request.
    const waitsMs: number[] = [];
    for (let i = 0; i < 5; i += 1) {
      const laterMs = performance.now();
      expect((await addAgent()).status).toBe(503);
      waitsMs.push(performance.now() - laterMs);
    }
    expect(Math.min(...waitsMs)).toBeLessThan(tookMs / 2);
    network.heal();
    await vi.waitUntil(async () => (await addAgent()).status === 201, 120_000);
  });

  test("a statement that waits for a lock does not count as a frozen database", async () => {
    const added = await addAgent();
    const { agent_id } = await added.json();
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const holding = direct.write(async (tx) => {
      await tx.updateTable("agents").set({ name: "y" }).where("agent_id", "=", agent_id).execute();
      await released;
    });
    const renamed = api("PATCH", `/agents/${agent_id}`, { name: "z" });
    await sleep(2000); // longer than the silence that counts as an outage
    release();
    await holding;
    expect((await renamed).status).toBe(200);
  });

  test("the image's health check passes while the database is unavailable, and fails without a relay", async () => {
    const file = readFileSync(join(import.meta.dirname, "../deploy/Containerfile"), "utf8");
    const command = /^HEALTHCHECK .*\n +CMD (.*)$/m.exec(file)?.[1] as string;
    expect(file).toMatch(/^EXPOSE 8080 /m);
    const check = async (port: string) => {
      const [node, ...rest] = JSON.parse(command) as string[];
      expect(node).toBe("node");
      const env = { ...process.env, BLINDRELAY_PORT: port };
      return once(spawn(process.execPath, rest, { env, stdio: "ignore" }), "exit");
    };
    const { port } = new URL(server.url);
    network.refuse();
    expect(await isReady()).toBe(false);
    expect(await check(port)).toEqual([0, null]);
    const unused = createServer().listen(0, "127.0.0.1");
    await once(unused, "listening");
    const { port: closed } = unused.address() as AddressInfo;
    unused.close();
    expect(await check(String(closed))).toEqual([1, null]);
  });

  // krylosov-aa/pg-status#32
  test("the log has an outage's first error and its end, and nothing in between", async () => {
    await vi.waitUntil(() => log.length === 0 || log.at(-1)?.includes("available again"), 120_000);
    log.length = 0;
    network.refuse();
    const statuses = await Promise.all(
      Array.from({ length: 30 }, async () => (await addAgent()).status),
    );
    expect(new Set(statuses)).toEqual(new Set([503]));
    await sleep(2500); // in which three timers encounter it twice
    expect(log).toHaveLength(1);
    expect(JSON.parse(log[0] as string)).toHaveProperty("err.stack");
    network.heal();
    await vi.waitUntil(() => log.at(-1)?.includes("available again"), 120_000);
    expect(log).toHaveLength(3);
    expect(JSON.parse(log[1] as string).errors).toBeGreaterThan(30);
  });

  test("requests of a session during a database outage are counted after it", async () => {
    const { socket, ask, used } = await link();
    for (let i = 0; i < 3; i += 1) await ask();
    network.refuse();
    expect(await isReady()).toBe(false);
    expect((await addAgent()).status).toBe(503);
    for (let i = 0; i < 4; i += 1) await ask(); // answered, whatever the store does
    socket.terminate(); // the count is saved at once, which fails
    await sleep(1500);
    network.heal();
    await vi.waitUntil(async () => (await used()) === 7, 120_000);
  });
});
