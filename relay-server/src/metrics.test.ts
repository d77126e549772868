/**
 * `/metrics`: both kinds of lockout are counted, and a metric that cannot be collected does not end
 * the relay.
 */
import { once } from "node:events";
import { type AddressInfo, connect } from "node:net";
import { Gauge, Registry } from "prom-client";
import { expect, test } from "vitest";
import { newTimings } from "./base/duration-histogram.ts";
import { UsernameLockout } from "./control/username-lockout.ts";
import type { HubStats } from "./core/hub.ts";
import { Lockout } from "./core/limits/lockout.ts";
import { World } from "./core/testing/test-hub.ts";
import { metricsServer, relayMetrics } from "./metrics.ts";

const ENGINES = {
  store: {
    isReady: async () => true,
    damage: () => null,
    pool: () => null,
    clock: { aheadMs: () => 0 },
  },
  notices: { changes: 0 },
  bus: null,
  pending: () => 0,
  certificateEnd: () => Number.POSITIVE_INFINITY,
};

test("a name that is guessed from many addresses is counted separately from locked addresses", async () => {
  const [lockout, usernameLockout] = [new Lockout(), new UsernameLockout()];
  const registry = relayMetrics(
    () => ({}) as HubStats,
    { lockout, usernameLockout },
    newTimings(),
    ENGINES,
  );
  for (let i = 0; i < 10; i += 1) usernameLockout.fail("ada", `192.0.2.${i}`, i);
  const shown = (name: string) => registry.getSingleMetricAsString(name);
  expect(await shown("blindrelay_name_lockouts_total")).toContain("_total 1");
  expect(await shown("blindrelay_lockouts_total")).toContain("_total 0");
});

test("a scrape visits only connections with a queue, however many there are", async () => {
  const world = new World();
  world.user("ann", "lamp");
  const client = world.client("ann");
  for (let i = 0; i < 50; i++) world.user("ann", `a${i}`);
  const peers = Array.from({ length: 50 }, (_, i) => world.agent(`a${i}`));
  const lamp = world.agent("lamp");
  lamp.stalled = true;
  client.say({ type: "relay", payload: "x", agent_id: "lamp" });
  let visits = 0;
  for (const { connection } of [client, ...peers, lamp]) {
    for (const [name, value] of Object.entries(connection)) {
      const get = () => {
        visits += 1;
        return value;
      };
      Object.defineProperty(connection, name, { get });
    }
  }
  const { lockout } = world;
  const usernameLockout = new UsernameLockout();
  const registry = relayMetrics(
    () => world.hub.stats(),
    { lockout, usernameLockout },
    newTimings(),
    ENGINES,
  );
  const text = await registry.metrics();
  expect(text).toContain('blindrelay_connections{type="agent"} 51');
  expect(text).toMatch(/blindrelay_queue_bytes [1-9]/);
  expect(visits).toBeLessThanOrEqual(1);
  expect(text).not.toContain("nodejs_active_"); // which list all sockets
  if (process.platform === "linux") expect(text).toMatch(/process_open_fds [1-9]/);
});

test("a connection that sends many requests at once is closed, at the cost of a few responses", async () => {
  const registry = new Registry();
  let asked = 0;
  new Gauge({
    name: "x",
    help: "x",
    registers: [registry],
    collect() {
      asked += 1;
    },
  });
  const server = metricsServer(registry, { error: () => undefined });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  socket.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n".repeat(1000));
  await once(socket, "close");
  expect(asked).toBeLessThanOrEqual(8);
  server.close();
});

test("a scraper that does not take its answer is cut after a minute", async () => {
  const server = metricsServer(new Registry(), { error: () => undefined });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const asked = once(server, "request");
  const socket = connect((server.address() as AddressInfo).port, "127.0.0.1");
  socket.on("error", () => undefined).resume();
  socket.write("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
  const [request] = await asked;
  expect(request.socket.timeout).toBe(60_000);
  socket.destroy();
  server.close();
});

test("a metric that cannot be collected is a 500 and a line in the log, and the next scrape works", async () => {
  const registry = new Registry();
  let fails = true;
  new Gauge({
    name: "x",
    help: "x",
    registers: [registry],
    collect() {
      if (fails) throw new Error("no figures");
    },
  });
  const logged: unknown[] = [];
  const server = metricsServer(registry, { error: (...args: unknown[]) => logged.push(args) });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const get = () => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/metrics`);
  expect((await get()).status).toBe(500);
  expect(logged).toMatchObject([[{ err: { message: "no figures" } }, expect.any(String)]]);
  fails = false;
  const answer = await get();
  expect([answer.status, await answer.text()]).toEqual([200, expect.stringContaining("x 0")]);
  server.closeAllConnections();
  server.close();
});
