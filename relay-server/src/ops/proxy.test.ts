/** The proxy's lines of docs/operations.md, used as they are, with another address in front. */
import { type ChildProcess, execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "@blindrelay/protocol/testing/free-port";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import WebSocket from "ws";
import { initStore } from "../control/data-dir.ts";
import { type RunningServer, startServer } from "../server.ts";

const HAS_CADDY = spawnSync("caddy", ["version"]).error === undefined;
const DOCS = join(import.meta.dirname, "../../../docs/operations.md");
const DEPLOY = join(import.meta.dirname, "../../deploy");

describe.skipIf(!HAS_CADDY)("Caddy (needs caddy)", () => {
  const folder = mkdtempSync(join(tmpdir(), "blindrelay-caddy-"));
  const env = { ...process.env, HOME: folder, XDG_CONFIG_HOME: folder, XDG_DATA_HOME: folder };
  let server: RunningServer;
  let caddy: ChildProcess | undefined;
  let port: number;

  beforeAll(async () => {
    const data = join(folder, "relay");
    await initStore({ data, username: "ada", password: "correct horse", totp: false });
    const trustedProxies = ["127.0.0.1"];
    server = await startServer({
      data,
      port: 0,
      metricsPort: 0,
      logLevel: "silent",
      trustedProxies,
    });
    const [, lines = ""] = /```caddy\n([^`]+)```/.exec(readFileSync(DOCS, "utf8")) ?? [];
    expect(lines).toContain("relay.example {");
    expect(lines).toContain("127.0.0.1:8080");
    port = await freePort();
    const config = join(folder, "Caddyfile");
    const here = lines
      .replace("relay.example", `http://127.0.0.1:${port}`)
      .replace("127.0.0.1:8080", new URL(server.url).host);
    writeFileSync(config, `{\n\tadmin off\n}\n${here}`);
    caddy = spawn("caddy", ["run", "--config", config, "--adapter", "caddyfile"], {
      env,
      stdio: "ignore",
    });
    await vi.waitUntil(
      () =>
        fetch(`http://127.0.0.1:${port}/health`).then(
          ({ ok }) => ok,
          () => false,
        ),
      { timeout: 60_000, interval: 50 },
    );
  });
  afterAll(async () => {
    caddy?.kill("SIGKILL");
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  test("passes REST and WebSockets", async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/auth/config`);
    expect(answer.status).toBe(200);
    const socket = new WebSocket(`ws://127.0.0.1:${port}/wss`);
    await once(socket, "open");
    socket.terminate();
  });

  test("accepts the file of the composed relays", () => {
    const config = ["adapt", "--config", join(DEPLOY, "Caddyfile"), "--adapter", "caddyfile"];
    const adapted = execFileSync("caddy", config, {
      env: { ...env, RELAY_DOMAIN: "relay.example" },
      stdio: ["ignore", "pipe", "ignore"],
    });
    expect(`${adapted}`).toContain("relay-1:8080");
  });
});
