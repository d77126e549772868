/**
 * An agent of agent-sdk/node throughout its life, on a real relay, on real sockets, with a real
 * client.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { AgentStatus } from "@blindrelay/agent-sdk";
import { type RunningAgent, type StartOptions, startAgent } from "@blindrelay/agent-sdk/node";
import { connect } from "@blindrelay/client-sdk/node";
import { makeToken } from "@blindrelay/protocol";
import { initStore, type RunningServer, startServer } from "@blindrelay/relay-server";
import { afterEach, beforeEach, expect, it } from "vitest";

let data: string;
let server: RunningServer;
let accountToken: string;
let agent: StartOptions;
let running: RunningAgent[];

const post = async <T>(path: string, body: object, token = ""): Promise<T> => {
  const response = await fetch(`${server.url}/api/v1${path}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  return (await response.json()) as T;
};

beforeEach(async () => {
  running = [];
  data = mkdtempSync(join(tmpdir(), "blindrelay-life-"));
  const who = { username: "ann", password: "a long enough password" };
  await initStore({ data, ...who, totp: false });
  server = await startServer({ data, port: 0, metricsPort: 0, logLevel: "silent" });
  const login = await post<{ user: { api_token: string } }>("/auth/login", who);
  accountToken = login.user.api_token;
  const made = await post<{ agent_id: string; api_token: string }>(
    "/agents",
    { name: "lamp" },
    accountToken,
  );
  agent = {
    url: server.url,
    agentId: made.agent_id,
    relayToken: made.api_token,
    agentToken: makeToken("e2e", crypto.getRandomValues(new Uint8Array(32))),
    stateDir: join(data, "agent"),
    program: (lamp) => lamp.handle("echo", async (params) => params),
    log: () => {},
  };
});

afterEach(async () => {
  for (const one of running) await one.stop();
  await server.stop();
  rmSync(data, { recursive: true, force: true });
});

const start = async (options: StartOptions = agent): Promise<RunningAgent> => {
  const one = await startAgent(options);
  running.push(one);
  return one;
};

const reaches = (one: RunningAgent, state: string): Promise<AgentStatus> =>
  new Promise((resolve) => {
    const look = (status: AgentStatus) => {
      if (status.state === state) resolve(status);
    };
    one.onState(look);
    look(one.core.link.status);
  });

it("answers before and after a restart of its process, and the client notices nothing", async () => {
  const first = await start();
  await first.online();
  const client = await connect({ url: server.url, accountToken });
  const lamp = client.agent(agent.agentId, agent.agentToken);
  expect(await lamp.call("echo", { n: 1 })).toEqual({ n: 1 });
  await first.stop();
  await (await start()).online();
  expect(await lamp.call("echo", { n: 2 }, { idempotent: true })).toEqual({ n: 2 });
  await client.close();
});

it("stays away for a minute when another device takes its place", async () => {
  const first = await start();
  await first.online();
  const second = await start({ ...agent, stateDir: join(data, "second") });
  await second.online();
  const status = await reaches(first, "waiting");
  expect(status.code).toBe("REPLACED");
  expect(status.waitMs).toBeGreaterThanOrEqual(60000);
  expect(second.core.link.state).toBe("online");
});

it("waits two minutes or more after a refusal", async () => {
  const relayToken = makeToken("agent", new Uint8Array(32));
  const status = await reaches(await start({ ...agent, relayToken }), "waiting");
  expect(status.code).toBe("INVALID_TOKEN");
  expect(status.waitMs).toBeGreaterThanOrEqual(120000);
});

it("waits as long as a restarting relay asks", async () => {
  const one = await start();
  await one.online();
  const waiting = reaches(one, "waiting");
  await server.stop();
  expect(await waiting).toMatchObject({ code: "RESTARTING" });
});
