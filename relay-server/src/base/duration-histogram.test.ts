/**
 * Histograms: each duration is in one bucket, the text is readable by Prometheus, and the relay's
 * own two.
 */
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Registry } from "prom-client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import WebSocket from "ws";
import { initStore } from "../control/data-dir.ts";
import { createLog } from "../log.ts";
import { type RunningServer, startServer } from "../server.ts";
import { Durations, registerDurations } from "./duration-histogram.ts";

test("a duration is counted in the first bucket that it fits, bounds included", () => {
  const durations = new Durations([1, 10]);
  for (const ms of [0, 1, 1.5, 10, 10.1, 5000]) durations.observe(ms);
  expect(durations.counts).toEqual([2, 2, 2]);
  expect(durations.sumMs).toBeCloseTo(5022.6);
});

test("the text is a histogram in seconds, with buckets that add up", async () => {
  const registry = new Registry();
  const durations = new Durations([1, 10]);
  for (const ms of [0.5, 5, 500]) durations.observe(ms);
  registerDurations(registry, "x_seconds", "How long x took.", [
    { labels: { outcome: "good" }, durations },
  ]);
  expect((await registry.metrics()).trim().split("\n")).toEqual([
    "# HELP x_seconds How long x took.",
    "# TYPE x_seconds histogram",
    'x_seconds_bucket{outcome="good",le="0.001"} 1',
    'x_seconds_bucket{outcome="good",le="0.01"} 2',
    'x_seconds_bucket{outcome="good",le="+Inf"} 3',
    'x_seconds_sum{outcome="good"} 0.5055',
    'x_seconds_count{outcome="good"} 3',
  ]);
});

describe("a relay", () => {
  let folder: string;
  let server: RunningServer;
  const lines: { [field: string]: unknown }[] = [];
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "blindrelay-durations-"));
    await initStore({ data: folder, username: "ada", password: "correct horse", totp: false });
    const log = createLog("info", { write: (line) => lines.push(JSON.parse(line)) });
    server = await startServer({ data: folder, port: 0, metricsPort: 0 }, { log });
  });
  afterAll(async () => {
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  test("measures refused and accepted handshakes, and the routing of one read in 16", async () => {
    const socket = new WebSocket(`${server.url.replace("http", "ws")}/wss`);
    await once(socket, "open");
    socket.send(JSON.stringify({ type: "auth", client_type: "client", api_token: "nonsense" }));
    await once(socket, "message");
    socket.send(JSON.stringify({ type: "ping" }));
    await once(socket, "message");
    const text = await (await fetch(server.metricsUrl)).text();
    expect(text).toContain('blindrelay_handshake_seconds_count{outcome="refused"} 1\n');
    expect(text).toContain('blindrelay_handshake_seconds_count{outcome="accepted"} 0\n');
    expect(text).toMatch(/blindrelay_routing_seconds_bucket\{le="\+Inf"\} 1\n/);
    socket.terminate();
  });

  test("has each request's id in its log and in its response", async () => {
    const answer = await fetch(`${server.url}/api/v1/agents/pump-7`);
    const { request_id } = await answer.json();
    expect(answer.headers.get("x-request-id")).toBe(request_id);
    expect(lines).toContainEqual(
      expect.objectContaining({
        msg: "request",
        request_id,
        method: "GET",
        route: "/api/v1/agents/:agent_id",
        status: 401,
        address: "127.0.0.1",
      }),
    );
  });
});
